//! Directories: odd names, packs, links, hostile manifests.

use super::*;
use crate::content::info::{Kind, Mtime};
use crate::content::manifest::{Entry, EntryKind, Manifest};
use crate::content::tree::unit_value;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// All that is below a directory: type, mode, time, and bytes or target.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (char, u32, i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for item in fs::read_dir(&directory).unwrap() {
            let path = item.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let (kind, bytes) = match metadata.file_type() {
                kind if kind.is_dir() => ('d', Vec::new()),
                kind if kind.is_symlink() => {
                    ('l', fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
                }
                _ => ('f', fs::read(&path).unwrap()),
            };
            if kind == 'd' {
                directories.push(path.clone());
            }
            let below = path.strip_prefix(root).unwrap().to_owned();
            let times = (metadata.mtime(), metadata.mtime_nsec());
            all.insert(below, (kind, metadata.mode() & 0o7777, times.0, times.1, bytes));
        }
    }
    all
}

fn odd_directory(dir: &TempDir) -> PathBuf {
    let root = dir.path().join("odd \n\u{e9}");
    let sub = root.join("-rf *").join(OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("nothing"), b"").unwrap();
    fs::write(root.join("one"), b"1").unwrap();
    fs::write(root.join("new\nline"), noise(5000)).unwrap();
    fs::write(root.join("x".repeat(255)), noise(7)).unwrap();
    fs::write(sub.join("border"), noise(32768)).unwrap();
    fs::write(sub.join("beyond"), noise(32769)).unwrap();
    fs::write(sub.join("half"), noise(8192)).unwrap();
    fs::write(sub.join("below half"), noise(8191)).unwrap();
    symlink("../../one", sub.join("up")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::set_permissions(root.join("one"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(&sub, fs::Permissions::from_mode(0o2555)).unwrap();
    root
}

#[test]
fn a_directory_with_odd_names_arrives_as_it_was_without_set_uid_bits() {
    let dir = TempDir::new().unwrap();
    let root = odd_directory(&dir);
    for block_size in [BLOCK_SIZE_MIN, 64 << 10, BLOCK_SIZE_MAX] {
        let source = source(&root, block_size);
        let out = TempDir::new().unwrap();
        let sink = receiver(&source, out.path()).unwrap();
        fetch(&source, &sink, 16384);
        let path = sink.finish().unwrap();
        assert_eq!(path.file_name(), root.file_name());
        let mut wanted = snapshot(&root);
        wanted.values_mut().for_each(|(_, mode, ..)| *mode &= 0o777);
        assert_eq!(snapshot(&path), wanted);
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "nothing else stays behind");
        // It serves on, and a second receiver's copy hashes to the same identity.
        let other = TempDir::new().unwrap();
        let second = receiver(&sink, other.path()).unwrap();
        fetch(&sink, &second, 1 << 20);
        assert_eq!(snapshot(&second.finish().unwrap()), wanted);
        let again = receiver(&source, other.path()).unwrap();
        assert!(again.is_complete(), "what is there already is complete at once");
    }
}

#[test]
fn an_empty_directory_arrives() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("empty");
    fs::create_dir(&root).unwrap();
    let source = source(&root, BLOCK_SIZE_MIN);
    let sink = receiver(&source, &dir.path().join("out")).unwrap();
    assert_eq!(fetch(&source, &sink, 16384), 1, "the manifest");
    assert_eq!(fs::read_dir(sink.finish().unwrap()).unwrap().count(), 0);
}

#[test]
fn five_thousand_small_files_are_packed_into_few_blocks() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("many");
    fs::create_dir(&root).unwrap();
    let text = noise(3000);
    for number in 0..5000usize {
        let below = root.join(format!("{}", number % 50));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{number}")), &text[..number % 3000]).unwrap();
    }
    let source = source(&root, 64 << 10);
    let bytes: u64 = (0..5000u64).map(|number| number % 3000).sum();
    let blocks = u64::from(source.info().blocks);
    let manifest_blocks = source.info().manifest_len().div_ceil(65536);
    assert_eq!(source.info().total_len(), bytes);
    assert!(blocks <= manifest_blocks + bytes.div_ceil(65536 - 3000), "{blocks}");
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    let mut holdings = sink.holdings();
    // The manifest and a third of the rest, then a crash.
    for block in 0..source.info().blocks / 3 {
        move_block(&source, &sink, block, 16384).learned.apply(&mut holdings);
    }
    sink.flush().unwrap();
    drop(sink);
    let sink = receiver(&source, &out).unwrap();
    assert_eq!(sink.holdings().held().count(), source.info().blocks / 3);
    fetch(&source, &sink, 16384);
    assert_eq!(snapshot(&sink.finish().unwrap()), snapshot(&root));
}

#[test]
fn what_cannot_be_shared_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("shared");
    fs::create_dir(&root).unwrap();
    let refused = |name: &str| {
        let error = scan(&root, BLOCK_SIZE_MIN).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        fs::remove_file(root.join(name)).unwrap();
        error
    };
    for target in ["/etc/passwd", "..", "../other", "a/../../b"] {
        symlink(target, root.join("escape")).unwrap();
        assert!(matches!(refused("escape"), ScanError::LinkOutside { .. }));
    }
    nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(refused("pipe"), ScanError::Special { what: "named pipe", .. }));
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    assert!(matches!(refused("socket"), ScanError::Special { what: "socket", .. }));
    if nix::unistd::geteuid().is_root() {
        println!("skipped: unreadable file: root reads everything");
        return;
    }
    fs::write(root.join("secret"), b"x").unwrap();
    fs::set_permissions(root.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    assert!(matches!(refused("secret"), ScanError::Read { .. }));
}

/// A source's side of a directory that no scan would give: a manifest and nothing else.
fn hostile(entries: Vec<Entry>, packs: usize) -> (GroupInfo, Vec<u8>) {
    let manifest = Manifest { block_size: BLOCK_SIZE_MIN, entries, packs: vec![[1; 32]; packs] };
    let (total_len, files) = manifest.totals().unwrap();
    let bytes = manifest.encode();
    let kind = Kind::Directory {
        name: b"hostile".to_vec(),
        manifest_len: bytes.len() as u64,
        total_len,
        files,
        mode: 0o755,
        mtime: Mtime::default(),
    };
    let info = GroupInfo {
        version: 1,
        root: *blake3::hash(&bytes).as_bytes(),
        kind,
        block_size: BLOCK_SIZE_MIN,
        blocks: 1 + packs as u32,
        system: System::Star,
        source: PeerId([7; 32]),
    };
    (info, bytes)
}

fn entry(path: &[u8], kind: EntryKind) -> Entry {
    Entry { path: path.into(), mode: 0o644, mtime: Mtime::default(), kind }
}

#[test]
fn a_hostile_manifest_is_refused_and_creates_nothing() {
    let file = |path: &[u8]| entry(path, EntryKind::File { len: 5, hash: [1; 32] });
    let link =
        |path: &[u8], target: &[u8]| entry(path, EntryKind::Symlink { target: target.into() });
    let manifests = [
        vec![file(b"../escaped")],
        vec![file(b"/tmp/escaped")],
        vec![file(b"a"), file(b"a")],
        vec![link(b"a", b"/tmp"), file(b"a/escaped")],
        vec![link(b"a", b"../..")],
    ];
    for entries in manifests {
        let dir = TempDir::new().unwrap();
        let packs =
            usize::from(entries.iter().any(|entry| matches!(entry.kind, EntryKind::File { .. })));
        let (info, bytes) = hostile(entries, packs);
        info.check().unwrap();
        let sink = Store::receive(info, dir.path(), false, QUIET).unwrap();
        let mut writer = sink.begin(0, bytes.len() as u32, &[]).unwrap();
        writer.write(&bytes).unwrap();
        let refused = writer.finish().unwrap_err();
        assert!(matches!(refused, WriteError::Contradiction(_)), "{refused}");
        assert_eq!(refused.failure(), crate::content::Failure::Integrity);
        assert_eq!(fs::read_dir(sink.work.join("tree")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the working directory");
    }
}

#[test]
fn a_pack_whose_file_has_another_hash_than_the_manifest_says_is_refused() {
    let text = b"small";
    let mut entries = vec![entry(b"a", EntryKind::File { len: 5, hash: [1; 32] })];
    for is_right in [false, true] {
        if is_right {
            let hash = *blake3::hash(text).as_bytes();
            entries[0].kind = EntryKind::File { len: 5, hash };
        }
        let dir = TempDir::new().unwrap();
        let manifest = Manifest {
            block_size: BLOCK_SIZE_MIN,
            entries: entries.clone(),
            packs: vec![*blake3::hash(text).as_bytes()],
        };
        let bytes = manifest.encode();
        let (mut info, _) = hostile(entries.clone(), 1);
        info.root = *blake3::hash(&bytes).as_bytes();
        let sink = Store::receive(info, dir.path(), false, QUIET).unwrap();
        let mut writer = sink.begin(0, bytes.len() as u32, &[]).unwrap();
        writer.write(&bytes).unwrap();
        let learned = writer.finish().unwrap().learned;
        assert_eq!((learned.lengths, learned.verifiable), (vec![(1, 5)], vec![(1, 2)]));
        let mut writer = sink.begin(1, 5, &[]).unwrap();
        writer.write(text).unwrap();
        match writer.finish() {
            Ok(written) => assert!(is_right && written.complete),
            Err(error) => assert!(!is_right, "{error}"),
        }
    }
    assert_ne!(unit_value(text, 0), *blake3::hash(text).as_bytes(), "a root is no inner value");
}

#[test]
fn a_different_directory_is_replaced_only_when_asked() {
    let dir = TempDir::new().unwrap();
    let root = odd_directory(&dir);
    let source = source(&root, BLOCK_SIZE_MIN);
    let out = TempDir::new().unwrap();
    let dest = out.path().join(root.file_name().unwrap());
    fs::create_dir(&dest).unwrap();
    fs::write(dest.join("precious"), b"x").unwrap();
    assert!(matches!(receiver(&source, out.path()), Err(OpenError::Exists { .. })));
    assert!(dest.join("precious").exists());
    let sink = Store::receive(source.info().clone(), out.path(), true, QUIET).unwrap();
    fetch(&source, &sink, 16384);
    assert!(dest.join("precious").exists(), "until the new one is whole");
    sink.finish().unwrap();
    assert!(!dest.join("precious").exists());
    assert!(dest.join("one").exists());
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn a_changed_file_of_a_directory_is_not_served() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("shared");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), noise(20_000)).unwrap();
    let source = source(&root, BLOCK_SIZE_MIN);
    let mut buf = vec![0; 3616];
    source.read_at(2, 0, &mut buf).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(root.join("a"), noise(20_000)).unwrap();
    assert!(source.read_at(2, 0, &mut buf).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_directory_arrives_as_it_was(
        files in prop::collection::btree_map(
            "[a-c -]{1,3}", prop_oneof![Just(0usize), 1usize..9000, 8000usize..70_000], 0..12,
        ),
        directories in prop::collection::btree_set("[a-c]{4}/[a-c]{1,2}", 0..4),
    ) {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("any");
        fs::create_dir(&root).unwrap();
        for directory in &directories {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (at, (name, len)) in files.iter().enumerate() {
            let below = directories.iter().nth(at % 5);
            fs::write(below.map_or(root.clone(), |below| root.join(below)).join(name), noise(*len))
                .unwrap();
        }
        let source = source(&root, BLOCK_SIZE_MIN);
        let sink = receiver(&source, &dir.path().join("out")).unwrap();
        fetch(&source, &sink, 10_000);
        prop_assert_eq!(snapshot(&sink.finish().unwrap()), snapshot(&root));
    }
}
