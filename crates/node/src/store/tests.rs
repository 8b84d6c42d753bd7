use super::*;
use crate::content::{BLOCK_SIZE_MAX, BLOCK_SIZE_MIN, ScanError, ScanOptions};
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use std::fs;
use std::ops::ControlFlow;
use tempfile::TempDir;

mod directories;
mod resuming;

const QUIET: Progress<'static> = &|_, _| ControlFlow::Continue(());

/// Bytes that are the same in every run and repeat nowhere.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(b"store tests").finalize_xof().fill(&mut bytes);
    bytes
}

fn scan(path: &Path, block_size: u32) -> Result<Scan, ScanError> {
    let options = ScanOptions { block_size: Some(block_size), state_dir: None };
    Scan::run(path, &options, QUIET)
}

fn source(path: &Path, block_size: u32) -> Arc<Store> {
    let scan = scan(path, block_size).unwrap();
    let info = scan.info(System::Star, PeerId([7; 32]));
    info.check().unwrap();
    Store::source(scan, info)
}

fn receiver(source: &Store, dir: &Path) -> Result<Arc<Store>, OpenError> {
    Store::receive(source.info().clone(), dir, false, QUIET)
}

/// Fetches every page that is wanted now and applies what it teaches.
fn fetch_pages(source: &Store, sink: &Store, holdings: &mut Holdings) {
    loop {
        let missing = sink.missing_pages(8);
        if missing.is_empty() {
            break;
        }
        for id in missing {
            sink.accept_page(id, &source.page(id).unwrap()).unwrap().apply(holdings);
        }
    }
}

/// Moves one block in portions of `portion` bytes.
fn move_block(source: &Store, sink: &Arc<Store>, block: u32, portion: usize) -> Written {
    let len = source.holdings().block_len(block);
    let mut bytes = vec![0; len as usize];
    source.read_at(block, 0, &mut bytes).unwrap();
    let mut writer = sink.begin(block, len, &source.proof(block).unwrap()).unwrap();
    for portion in bytes.chunks(portion) {
        writer.write(portion).unwrap();
    }
    writer.finish().unwrap()
}

/// Moves everything that is missing, as a driver would; returns how many blocks that took.
fn fetch(source: &Store, sink: &Arc<Store>, portion: usize) -> u32 {
    let mut holdings = sink.holdings();
    let mut moved = 0;
    while !holdings.is_complete() {
        fetch_pages(source, sink, &mut holdings);
        let next = holdings.verifiable().iter_without(&[holdings.held()]).last();
        let block = next.expect("an incomplete content has a block that can be fetched");
        let written = move_block(source, sink, block, portion);
        assert!(!written.duplicate);
        assert!(holdings.hold(block));
        written.learned.apply(&mut holdings);
        assert_eq!(written.complete, holdings.is_complete());
        moved += 1;
    }
    assert!(sink.is_complete());
    moved
}

fn shared_file(dir: &TempDir, len: usize) -> PathBuf {
    let path = dir.path().join("shared");
    fs::write(&path, noise(len)).unwrap();
    path
}

#[test]
fn a_file_of_any_length_arrives_whole_at_any_block_size() {
    let unit = 64 << 10;
    let lens = [0, 1, 16383, 16384, 16385, unit - 1, unit, unit + 1, 3 * unit, (1 << 20) + 7];
    for block_size in [BLOCK_SIZE_MIN, 64 << 10, 256 << 10, BLOCK_SIZE_MAX] {
        for len in lens {
            let dir = TempDir::new().unwrap();
            let path = shared_file(&dir, len);
            let source = source(&path, block_size);
            assert_eq!(source.info().root, *blake3::hash(&noise(len)).as_bytes());
            let out = dir.path().join("out");
            let sink = receiver(&source, &out).unwrap();
            for portion in [16384, 1000, usize::MAX] {
                fetch(&source, &sink, portion.min(len.max(1)));
            }
            assert_eq!(sink.finish().unwrap(), out.join("shared"));
            assert_eq!(fs::read(out.join("shared")).unwrap(), noise(len));
            assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing else stays behind");
            assert_eq!(sink.bytes_held(), len as u64);
        }
    }
}

#[test]
fn a_file_with_any_name_arrives() {
    use std::os::unix::ffi::OsStrExt;
    for name in [&b"-rf"[..], b" ", b"\n", b"\xff\xfe", b".hidden", &[b'x'; 255], b"a*b?'\""] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, noise(20_000)).unwrap();
        let source = source(&path, BLOCK_SIZE_MIN);
        let sink = receiver(&source, &dir.path().join("out")).unwrap();
        fetch(&source, &sink, 16384);
        let got = sink.finish().unwrap();
        assert_eq!(got.file_name().unwrap().as_bytes(), name);
        assert_eq!(fs::read(got).unwrap(), noise(20_000));
    }
}

#[test]
fn a_finished_receiver_serves_pages_proofs_and_bytes_like_the_source() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 700_000), 128 << 10);
    let first = receiver(&source, &dir.path().join("first")).unwrap();
    fetch(&source, &first, 16384);
    first.flush().unwrap();
    first.finish().unwrap();
    let second = receiver(&first, &dir.path().join("second")).unwrap();
    fetch(&first, &second, 16384);
    assert_eq!(fs::read(second.finish().unwrap()).unwrap(), noise(700_000));
}

#[test]
fn a_flipped_bit_is_refused_at_its_unit_and_never_stored() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 512 << 10), 256 << 10);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    let proof = source.proof(1).unwrap();
    for portion in [1 << 14, 1 << 16, 1 << 18, 10_000] {
        let mut bytes = noise(512 << 10)[256 << 10..].to_vec();
        bytes[100_000] ^= 4;
        let mut writer = sink.begin(1, 256 << 10, &proof).unwrap();
        let refused = bytes.chunks(portion).position(|portion| writer.write(portion).is_err());
        let at = refused.expect("the flipped bit is found");
        assert_eq!(at, (131_072usize.div_ceil(portion) - 1).min(bytes.len() / portion));
        drop(writer);
        assert!(!sink.is_complete());
        assert_eq!(sink.holdings().held().count(), 0);
    }
    let data = fs::read(sink.work.join("data")).unwrap();
    let unit = (256 << 10) + 65_536..(256 << 10) + 131_072;
    assert!(data[unit].iter().all(|&byte| byte == 0), "the corrupt unit was stored");
}

#[test]
fn wrong_lengths_proofs_and_unknown_blocks_are_refused_before_any_byte() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 600_000), 256 << 10);
    let sink = receiver(&source, &dir.path().join("out")).unwrap();
    let proof = source.proof(1).unwrap();
    assert_eq!(sink.begin(1, 256 << 10, &proof).err(), Some(Refused::NotVerifiable));
    fetch_pages(&source, &sink, &mut sink.holdings());
    assert_eq!(sink.begin(3, 256 << 10, &proof).err(), Some(Refused::NotVerifiable));
    assert_eq!(sink.begin(1, 255 << 10, &proof).err(), Some(Refused::Length));
    assert_eq!(sink.begin(1, 256 << 10, &proof[1..]).err(), Some(Refused::Corrupt));
    assert_eq!(sink.begin(0, 256 << 10, &proof).err(), Some(Refused::Corrupt));
    let mut writer = sink.begin(1, 256 << 10, &proof).unwrap();
    assert!(matches!(writer.write(&vec![0; (256 << 10) + 1]), Err(WriteError::Corrupt)));
    let writer = sink.begin(1, 256 << 10, &proof).unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Corrupt)), "too short");
}

#[test]
fn two_writers_of_one_block_are_safe_and_the_second_is_a_duplicate() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 200_000), BLOCK_SIZE_MAX);
    let sink = receiver(&source, &dir.path().join("out")).unwrap();
    let proof = source.proof(0).unwrap();
    let mut first = sink.begin(0, 200_000, &proof).unwrap();
    let mut second = sink.begin(0, 200_000, &proof).unwrap();
    for portion in noise(200_000).chunks(16384) {
        first.write(portion).unwrap();
        second.write(portion).unwrap();
    }
    assert!(!first.finish().unwrap().duplicate);
    assert!(second.finish().unwrap().duplicate);
    let mut third = sink.begin(0, 200_000, &[]).unwrap();
    third.write(&vec![0; 200_000]).unwrap();
    assert!(third.finish().unwrap().duplicate, "its bytes are dropped");
    assert_eq!(sink.bytes_held(), 200_000);
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(200_000));
}

#[test]
fn a_file_that_changes_while_it_is_shared_is_not_served() {
    let dir = TempDir::new().unwrap();
    let path = shared_file(&dir, 100_000);
    let source = source(&path, BLOCK_SIZE_MIN);
    let mut buf = vec![0; 16384];
    source.read_at(2, 0, &mut buf).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).unwrap();
    assert!(source.read_at(2, 0, &mut buf).is_err());
    file.set_len(10).unwrap();
    assert!(source.read_at(2, 0, &mut buf).is_err());
}

#[test]
fn unit_values_that_the_disk_lost_are_made_anew() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 300_000), 256 << 10);
    let right = source.proof(0).unwrap();
    source.outboard.write(0, &vec![1; right.len()]).unwrap();
    assert_eq!(source.proof(0).unwrap(), right);
    assert_eq!(source.outboard.read(0, 256 << 10).unwrap(), right);
}

#[test]
fn an_identical_file_completes_at_once_and_a_different_one_is_kept() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 300_000), 64 << 10);
    let sink = receiver(&source, dir.path()).unwrap();
    assert!(sink.is_complete());
    assert_eq!(sink.finish().unwrap(), dir.path().join("shared"));
    assert!(sink.holdings().is_complete());
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    for other in [&noise(300_001)[1..], b"short"] {
        fs::write(out.join("shared"), other).unwrap();
        assert!(matches!(receiver(&source, &out), Err(OpenError::Exists { .. })));
        assert_eq!(fs::read(out.join("shared")).unwrap(), other);
    }
    let sink = Store::receive(source.info().clone(), &out, true, QUIET).unwrap();
    fetch(&source, &sink, 16384);
    assert_eq!(fs::read(out.join("shared")).unwrap(), b"short", "replaced only at the end");
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(300_000));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn what_came_into_being_meanwhile_is_not_overwritten() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 50_000), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch(&source, &sink, 16384);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "no final name before the end");
    fs::write(out.join("shared"), b"precious").unwrap();
    assert!(matches!(sink.finish(), Err(FinishError::Exists { .. })));
    assert_eq!(fs::read(out.join("shared")).unwrap(), b"precious");
    fs::remove_file(out.join("shared")).unwrap();
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(50_000));
}

#[test]
fn modes_and_times_arrive_without_set_uid_bits() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let dir = TempDir::new().unwrap();
    let path = shared_file(&dir, 10);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6751)).unwrap();
    let source = source(&path, BLOCK_SIZE_MIN);
    let sink = receiver(&source, &dir.path().join("out")).unwrap();
    fetch(&source, &sink, 16384);
    let got = fs::metadata(sink.finish().unwrap()).unwrap();
    let given = fs::metadata(&path).unwrap();
    assert_eq!(got.mode() & 0o7777, 0o751);
    assert_eq!((got.mtime(), got.mtime_nsec()), (given.mtime(), given.mtime_nsec()));
}

#[test]
fn a_missing_path_and_one_without_a_name_are_refused_in_a_sentence() {
    let dir = TempDir::new().unwrap();
    let missing = scan(&dir.path().join("nothing"), BLOCK_SIZE_MIN).unwrap_err();
    assert!(missing.to_string().contains("nothing cannot be read"), "{missing}");
    assert!(matches!(scan(Path::new("/"), BLOCK_SIZE_MIN), Err(ScanError::Nameless { .. })));
    let path = shared_file(&dir, 1);
    assert!(matches!(scan(&path, 20_000), Err(ScanError::BlockSize(20_000))));
    assert!(matches!(scan(Path::new("/dev/null"), 1 << 20), Err(ScanError::Special { .. })));
}

#[test]
fn many_threads_write_and_read_while_one_flushes() {
    let dir = TempDir::new().unwrap();
    let len = 3_000_001;
    let source = source(&shared_file(&dir, len), 32 << 10);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    let blocks = source.info().blocks;
    let new = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (source, sink, new) = (&source, &sink, &new);
            scope.spawn(move || {
                for at in 0..blocks {
                    let block = (at * (2 * thread + 1)) % blocks;
                    let written = move_block(source, sink, block, 5000);
                    new.fetch_add(
                        u32::from(!written.duplicate),
                        std::sync::atomic::Ordering::SeqCst,
                    );
                    let mut bytes = vec![0; sink.holdings().block_len(block) as usize];
                    sink.read_at(block, 0, &mut bytes).unwrap();
                    let start = block as usize * (32 << 10);
                    assert_eq!(bytes, noise(len)[start..start + bytes.len()]);
                }
            });
        }
        scope.spawn(|| (0..10).for_each(|_| sink.flush().unwrap()));
    });
    assert_eq!(new.into_inner(), blocks, "each block is new once");
    sink.flush().unwrap();
    drop(sink);
    let sink = receiver(&source, &out).unwrap();
    assert!(sink.is_complete());
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(len));
}
