//! Crashes and restarts.
use super::*;
use crate::store::record::BootId;

/// No machine's run is called so.
const OTHER_BOOT: BootId = std::num::NonZeroU128::new(1);

/// Opens the receiver's store as after a power loss.
fn receiver_after_power_loss(source: &Store, dir: &Path) -> Arc<Store> {
    Arc::new(partial::open(source.info().clone(), dir, false, OTHER_BOOT, QUIET).unwrap())
}

/// What is flushed first is on disk, the rest is only written; nothing is torn.
#[test]
fn a_killed_process_loses_no_block_and_a_power_loss_what_was_not_flushed() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 1 << 20), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    (0..20).for_each(|block| _ = move_block(&source, &sink, block, 16384));
    sink.flush().unwrap();
    (20..30).for_each(|block| _ = move_block(&source, &sink, block, 16384));
    assert!(matches!(receiver(&source, &out), Err(OpenError::InUse { .. })));
    drop(sink);
    for (unplugged, kept) in [(false, 30), (true, 20)] {
        let copied = dir.path().join(kept.to_string());
        copy(&out, &copied);
        let sink = match unplugged {
            true => receiver_after_power_loss(&source, &copied),
            false => receiver(&source, &copied).unwrap(),
        };
        assert!(sink.missing_pages(9).is_empty(), "pages are kept");
        assert_eq!(sink.holdings().held().iter().collect::<Vec<_>>(), Vec::from_iter(0..kept));
        assert_eq!(sink.bytes_held(), u64::from(kept) * 16384);
        assert_eq!(fetch(&source, &sink, 16384), 64 - kept);
        assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(1 << 20));
    }
}

#[test]
fn blocks_of_a_killed_process_are_flushed_by_the_next_one() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 1 << 20), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    (0..20).for_each(|block| _ = move_block(&source, &sink, block, 16384));
    drop(sink);
    let sink = receiver(&source, &out).unwrap();
    assert_eq!(sink.holdings().held().count(), 20);
    sink.flush().unwrap();
    drop(sink);
    assert_eq!(receiver_after_power_loss(&source, &out).holdings().held().count(), 20);
}

#[test]
fn what_another_version_left_is_started_anew() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 200_000), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    let _ = move_block(&source, &sink, 3, 16384);
    let record = fs::OpenOptions::new().write(true).open(sink.work.join("record")).unwrap();
    drop(sink);
    std::os::unix::fs::FileExt::write_all_at(&record, b"ABrecrd1", 0).unwrap();
    let sink = receiver(&source, &out).unwrap();
    assert_eq!(sink.holdings().held().count(), 0);
    fetch(&source, &sink, 16384);
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(200_000));
}

/// A copy of a directory as a kill at this moment would leave it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let path = item.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => _ = fs::copy(&path, &target).unwrap(),
        }
    }
}

/// Runs a download and after each operation resumes from a copy, as after a kill and as after a
/// power loss: it must have what was written, or what was flushed, and complete to the same bytes.
fn crash_everywhere(root: &Path, block_size: u32) {
    let source = source(root, block_size);
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    let mut holdings = sink.holdings();
    let mut flushed = 0;
    let mut step = 0;
    loop {
        for unplugged in [false, true] {
            let crashed = dir.path().join(format!("crashed {step}"));
            copy(&out, &crashed);
            let (resumed, kept) = match unplugged {
                true => (receiver_after_power_loss(&source, &crashed), flushed),
                false => (receiver(&source, &crashed).unwrap(), sink.holdings().held().count()),
            };
            assert_eq!(resumed.holdings().held().count(), kept, "at step {step}");
            if !unplugged || step % 3 == 0 {
                assert_eq!(resumed.missing_pages(99), sink.missing_pages(99), "at step {step}");
            }
            assert_eq!(fetch(&source, &resumed, 16384), source.info().blocks - kept);
            assert!(same(&resumed.finish().unwrap(), root), "at step {step}");
            fs::remove_dir_all(&crashed).unwrap();
        }
        if sink.is_complete() {
            break;
        }
        fetch_pages(&source, &sink, &mut holdings);
        let next = holdings.verifiable().iter_without(&[holdings.held()]).next().unwrap();
        move_block(&source, &sink, next, 16384).learned.apply(&mut holdings);
        holdings.hold(next);
        step += 1;
        if step % 3 == 0 {
            sink.flush().unwrap();
            flushed = sink.holdings().held().count();
        }
    }
}

fn same(a: &Path, b: &Path) -> bool {
    let output = std::process::Command::new("diff").arg("-r").arg(a).arg(b).output().unwrap();
    output.status.success()
}

#[test]
fn a_kill_after_any_operation_on_a_file_loses_nothing_and_a_power_loss_what_was_not_flushed() {
    let dir = TempDir::new().unwrap();
    crash_everywhere(&shared_file(&dir, 20 * 16384 + 5), BLOCK_SIZE_MIN);
    crash_everywhere(&shared_file(&dir, 9 * 131_072 + 5), 128 << 10);
}

#[test]
fn a_kill_after_any_operation_on_a_directory_loses_nothing_and_a_power_loss_what_was_not_flushed() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("shared");
    fs::create_dir_all(root.join("sub/empty")).unwrap();
    for number in 0..200 {
        fs::write(root.join(format!("sub/{number}")), &noise(4000)[number..number * 10]).unwrap();
    }
    fs::write(root.join("large"), noise(70_000)).unwrap();
    fs::write(root.join("nothing"), b"").unwrap();
    crash_everywhere(&root, BLOCK_SIZE_MIN);
}

#[test]
fn a_record_torn_at_any_byte_still_leads_to_the_whole_file() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 6 * 16384), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    for block in 0..4 {
        let _ = move_block(&source, &sink, block, 16384);
        sink.flush().unwrap();
    }
    let record = sink.work.file_name().unwrap().to_owned();
    let len = fs::metadata(sink.work.join("record")).unwrap().len();
    let mut before = [0; 2];
    for (cut, unplugged) in (0..=len).flat_map(|cut| [(cut, false), (cut, true)]) {
        let crashed = dir.path().join("crashed");
        copy(&out, &crashed);
        let record = fs::OpenOptions::new().write(true).open(crashed.join(&record).join("record"));
        record.unwrap().set_len(cut).unwrap();
        let resumed = match unplugged {
            true => receiver_after_power_loss(&source, &crashed),
            false => receiver(&source, &crashed).unwrap(),
        };
        let held = resumed.holdings().held().count();
        let before = &mut before[usize::from(unplugged)];
        assert!(held >= *before && held <= 4);
        assert!(held < 4 || !unplugged || cut == len);
        *before = held;
        assert_eq!(fetch(&source, &resumed, 16384), 6 - held);
        assert_eq!(fs::read(resumed.finish().unwrap()).unwrap(), noise(6 * 16384));
        fs::remove_dir_all(&crashed).unwrap();
    }
    assert_eq!(before, [4, 4]);
}

#[test]
fn another_block_size_starts_anew_and_another_source_of_the_same_file_goes_on() {
    let dir = TempDir::new().unwrap();
    let path = shared_file(&dir, 200_000);
    let source = source(&path, BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    let _ = move_block(&source, &sink, 3, 16384);
    sink.flush().unwrap();
    drop(sink);
    let mut info = source.info().clone();
    info.source = PeerId([8; 32]);
    let sink = Store::receive(info, &out, false, QUIET).unwrap();
    assert_eq!(sink.holdings().held().count(), 1);
    drop(sink);
    let coarse = super::source(&path, 64 << 10);
    let sink = receiver(&coarse, &out).unwrap();
    assert_eq!(sink.holdings().held().count(), 0);
    fetch(&coarse, &sink, 16384);
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(200_000));
}

#[test]
fn a_working_directory_that_is_a_link_is_refused() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 50_000), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let work = receiver(&source, &out).unwrap().work.clone();
    fs::rename(&work, dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &work).unwrap();
    assert!(matches!(receiver(&source, &out), Err(OpenError::Storage(_))));
}

/// Not a test by itself: the child that [`kill_9_at_any_moment_loses_no_block`] kills.
#[test]
fn child_that_downloads_until_killed() {
    let Some(dir) = std::env::var_os("ANABRANCH_TEST_CHILD_DIR") else { return };
    let dir = Path::new(&dir);
    let source = source(&dir.join("shared"), BLOCK_SIZE_MIN);
    let sink = receiver(&source, &dir.join("out")).unwrap();
    let mut holdings = sink.holdings();
    fetch_pages(&source, &sink, &mut holdings);
    let missing: Vec<_> = holdings.verifiable().iter_without(&[holdings.held()]).collect();
    for (at, block) in missing.into_iter().enumerate() {
        let _ = move_block(&source, &sink, block, 16384);
        let held = sink.holdings().held().count();
        fs::write(dir.join("written.tmp"), held.to_string()).unwrap();
        fs::rename(dir.join("written.tmp"), dir.join("written")).unwrap();
        if at % 7 == 0 {
            sink.flush().unwrap();
        }
    }
    sink.finish().unwrap();
}

#[test]
fn kill_9_at_any_moment_loses_no_block() {
    let dir = TempDir::new().unwrap();
    let len = 1000 * 16384 + 1;
    let path = shared_file(&dir, len);
    let mut kills = 0;
    let out = dir.path().join("out");
    for round in 0..40u64 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::resuming::child_that_downloads_until_killed"])
            .env("ANABRANCH_TEST_CHILD_DIR", dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(15 + round * 7 % 41));
        let done = child.try_wait().unwrap();
        let _ = child.kill();
        let _ = child.wait();
        if let Some(status) = done {
            assert!(status.success());
            break;
        }
        kills += 1;
        if out.join("shared").exists() {
            break;
        }
        let written = fs::read_to_string(dir.path().join("written")).unwrap_or("0".into());
        let source = source(&path, BLOCK_SIZE_MIN);
        let sink = receiver(&source, &out).unwrap();
        if sink.is_complete() {
            break;
        }
        let held = sink.holdings().held().count();
        assert!(held >= written.parse().unwrap(), "{held} of {written} written");
    }
    assert!(kills > 0, "no child was killed before it was done");
    let source = source(&path, BLOCK_SIZE_MIN);
    let sink = receiver(&source, &out).unwrap();
    fetch(&source, &sink, 16384);
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(len));
}

/// A file system of its own, of some MiB; unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(mib: u32) -> Option<SmallDisk> {
        let dir = TempDir::new().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "anabranch-test"])
            .arg(dir.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(dir)),
            _ => {
                println!("skipped: mounting a tmpfs needs root");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_disk_too_small_for_a_file_is_refused_before_any_block() {
    let Some(disk) = SmallDisk::mount(1) else { return };
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 2 << 20), BLOCK_SIZE_MIN);
    let refused = receiver(&source, disk.0.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Storage(StorageError::Full { .. })), "{refused}");
    assert!(refused.to_string().contains("no space left"), "{refused}");
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn a_disk_that_fills_up_keeps_what_was_flushed_and_goes_on_once_there_is_space() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("shared");
    fs::create_dir(&root).unwrap();
    for number in 0..16 {
        fs::write(root.join(format!("{number}")), noise(100_000 + number)).unwrap();
    }
    let source = source(&root, BLOCK_SIZE_MIN);
    let sink = receiver(&source, disk.0.path()).unwrap();
    // Somebody else takes the space meanwhile.
    let hog = disk.0.path().join("hog");
    let hog_file = fs::File::create(&hog).unwrap();
    nix::fcntl::fallocate(&hog_file, nix::fcntl::FallocateFlags::empty(), 0, 3 << 20).unwrap();
    let mut holdings = sink.holdings();
    let full = loop {
        fetch_pages(&source, &sink, &mut holdings);
        let block = holdings.verifiable().iter_without(&[holdings.held()]).next().unwrap();
        let len = holdings.block_len(block);
        let mut bytes = vec![0; len as usize];
        source.read_at(block, 0, &mut bytes).unwrap();
        let mut writer = sink.begin(block, len, &source.proof(block).unwrap()).unwrap();
        if let Err(error) = writer.write(&bytes) {
            break error;
        }
        writer.finish().unwrap().learned.apply(&mut holdings);
        holdings.hold(block);
        if block.is_multiple_of(5) {
            sink.flush().unwrap();
        }
    };
    assert!(matches!(full, WriteError::Storage(StorageError::Full { .. })), "{full}");
    // What is held may or may not find space for its record; either way nothing is broken.
    let flushed = sink.flush();
    let held = sink.holdings().held().count();
    assert!(held > 5 && held < source.info().blocks);
    drop(sink);
    fs::remove_file(&hog).unwrap();
    drop(hog_file);
    let sink = receiver(&source, disk.0.path()).unwrap();
    let recorded = sink.holdings().held().count();
    assert!(recorded <= held && (recorded == held || flushed.is_err()));
    fetch(&source, &sink, 16384);
    assert!(same(&sink.finish().unwrap(), &root));
}
