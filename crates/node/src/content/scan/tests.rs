use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(b"scan tests").finalize_xof().fill(&mut bytes);
    bytes
}

/// Scans and says how many bytes had to be hashed.
fn counted(path: &Path, options: &ScanOptions) -> (Scan, u64) {
    let hashed = AtomicU64::new(0);
    let scan = Scan::run(path, options, &|done, total| {
        assert!(done <= total);
        hashed.fetch_max(done, Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    (scan.unwrap(), hashed.into_inner())
}

/// Until a content is old enough for its scan to be kept.
fn let_time_pass() {
    std::thread::sleep(std::time::Duration::from_millis(40));
}

#[test]
fn an_unchanged_file_is_hashed_once_and_a_changed_one_again() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, noise(700_000)).unwrap();
    let_time_pass();
    let state_dir = Some(dir.path().join("state"));
    let options = ScanOptions { block_size: Some(128 << 10), state_dir };
    let (first, hashed) = counted(&path, &options);
    assert_eq!(hashed, 700_000);
    assert_eq!(first.root(), blake3::hash(&noise(700_000)).as_bytes());
    let (second, hashed) = counted(&path, &options);
    assert_eq!((hashed, second.root()), (0, first.root()));
    assert_eq!(
        first.outboard.read(2, 128 << 10).unwrap(),
        second.outboard.read(2, 128 << 10).unwrap()
    );
    let (_, hashed) = counted(&path, &ScanOptions { block_size: Some(1 << 20), ..options.clone() });
    assert_eq!(hashed, 700_000, "another block size");
    fs::write(&path, noise(700_001)).unwrap();
    let_time_pass();
    let (changed, hashed) = counted(&path, &options);
    assert_eq!(hashed, 700_001);
    assert_ne!(changed.root(), first.root());
}

#[test]
fn an_unchanged_directory_is_hashed_once_and_a_changed_one_again() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/a"), noise(100_000)).unwrap();
    fs::write(root.join("b"), noise(10)).unwrap();
    let_time_pass();
    let state_dir = Some(dir.path().join("state"));
    let options = ScanOptions { block_size: None, state_dir };
    let (first, _) = counted(&root, &options);
    let (second, hashed) = counted(&root, &options);
    assert_eq!((hashed, second.root()), (0, first.root()));
    fs::write(root.join("b"), &noise(20)[10..]).unwrap();
    let_time_pass();
    let (third, hashed) = counted(&root, &options);
    assert!(hashed > 0);
    assert_ne!(third.root(), first.root());
}

#[test]
fn a_damaged_or_missing_kept_scan_is_made_again() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, noise(300_000)).unwrap();
    let_time_pass();
    let state_dir = dir.path().join("state");
    let options = ScanOptions { block_size: Some(128 << 10), state_dir: Some(state_dir.clone()) };
    let kept = |extension: &str| {
        let items = fs::read_dir(state_dir.join("scans")).unwrap();
        let mut paths = items.map(|item| item.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|own| own == extension)).unwrap()
    };
    let (right, _) = counted(&path, &options);
    let mut bytes = fs::read(kept("scan")).unwrap();
    bytes[20] ^= 1;
    fs::write(kept("scan"), bytes).unwrap();
    let (scan, hashed) = counted(&path, &options);
    assert_eq!((hashed, scan.root()), (300_000, right.root()));
    fs::remove_file(kept("units")).unwrap();
    let (scan, hashed) = counted(&path, &options);
    assert_eq!((hashed, scan.root()), (300_000, right.root()));
    fs::write(kept("scan"), b"").unwrap();
    assert_eq!(counted(&path, &options).1, 300_000);
}

#[test]
fn a_file_written_this_very_moment_is_not_trusted_to_stay() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    let options = ScanOptions { block_size: None, state_dir: Some(dir.path().join("state")) };
    // The file system's clock ticks in milliseconds: both writes may get the same time.
    for text in [b"one", b"two"] {
        fs::write(&path, text).unwrap();
        assert_eq!(counted(&path, &options).0.root(), blake3::hash(text).as_bytes());
    }
}

#[test]
fn a_scan_stops_when_asked_and_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, noise(3_000_000)).unwrap();
    let_time_pass();
    let state_dir = dir.path().join("state");
    let options = ScanOptions { block_size: Some(1 << 20), state_dir: Some(state_dir.clone()) };
    let stopped = Scan::run(&path, &options, &|_, _| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(ScanError::Cancelled)));
    assert_eq!(fs::read_dir(state_dir.join("scans")).unwrap().count(), 0);
}

#[test]
fn a_file_that_shrinks_while_it_is_hashed_is_an_error_that_says_so() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, noise(3_000_000)).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let changed = Scan::run(&path, &ScanOptions::default(), &|_, _| {
        file.set_len(1_000_000).unwrap();
        ControlFlow::Continue(())
    });
    assert!(matches!(changed, Err(ScanError::Changed { .. })), "{changed:?}");
}

#[test]
fn only_so_many_scans_are_kept() {
    let dir = TempDir::new().unwrap();
    let options = ScanOptions { block_size: None, state_dir: Some(dir.path().join("state")) };
    for number in 0..80 {
        fs::write(dir.path().join(format!("{number}")), noise(number)).unwrap();
    }
    let_time_pass();
    for number in 0..80 {
        counted(&dir.path().join(format!("{number}")), &options);
    }
    assert_eq!(fs::read_dir(dir.path().join("state/scans")).unwrap().count(), 64);
    let last = dir.path().join("79");
    assert_eq!(counted(&last, &options).1, 0, "the newest stay");
}

#[test]
fn the_default_block_size_follows_the_length() {
    let cases = [
        (0, 16 << 10),
        (1, 16 << 10),
        (100_000_000, 64 << 10),
        (1_000_000_000, 512 << 10),
        (20_000_000_000, 8 << 20),
        (1_000_000_000_000, 8 << 20),
        (u64::MAX, 8 << 20),
    ];
    for (len, block_size) in cases {
        assert_eq!(block_size_for(len), block_size, "{len}");
    }
}
