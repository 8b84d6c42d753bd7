use super::*;
use proptest::prelude::*;

fn entry(path: &[u8], kind: EntryKind) -> Entry {
    Entry { path: path.into(), mode: 0o640, mtime: Mtime { seconds: -2, nanos: 5 }, kind }
}

fn file(path: &[u8], len: u64) -> Entry {
    let hash = if len == 0 { *blake3::hash(b"").as_bytes() } else { [9; 32] };
    entry(path, EntryKind::File { len, hash })
}

fn directory(path: &[u8]) -> Entry {
    entry(path, EntryKind::Directory)
}

fn link(path: &[u8], target: &[u8]) -> Entry {
    entry(path, EntryKind::Symlink { target: target.into() })
}

fn manifest(entries: Vec<Entry>) -> Manifest {
    let mut manifest = Manifest { block_size: 16384, entries, packs: Vec::new() };
    let packs = layout::Layout::directory(&manifest, 0).map_or(0, |layout| layout.packs());
    manifest.packs = vec![[8; 32]; packs];
    manifest
}

fn decode(entries: Vec<Entry>) -> Result<Manifest, ManifestError> {
    Manifest::decode(&manifest(entries).encode())
}

#[test]
fn odd_names_survive() {
    let entries = vec![
        file(b" ", 1),
        file(b"-rf", 2),
        file(b"a\nb", 3),
        directory(b"d"),
        file(b"d-e", 0),
        link(b"d/up", b"../a\nb"),
        file(b"d/\xff\xfe", 20_000),
        file(&[b'x'; 255], 4),
    ];
    let wanted = manifest(entries.clone());
    assert_eq!(decode(entries), Ok(wanted));
}

#[test]
fn hostile_paths_are_refused_with_the_path_named() {
    let too_long = [vec![b'x'; 256]].concat();
    let hostile: Vec<Vec<Entry>> = vec![
        vec![file(b"/etc/passwd", 1)],
        vec![file(b"..", 1)],
        vec![directory(b"a"), file(b"a/../b", 1)],
        vec![directory(b"a"), file(b"a/..", 1)],
        vec![file(b"./a", 1)],
        vec![file(b"", 1)],
        vec![directory(b"a"), file(b"a//b", 1)],
        vec![directory(b"a/")],
        vec![file(b"a\0b", 1)],
        vec![file(&too_long, 1)],
        vec![file(b"a", 1), file(b"a", 1)],
        vec![file(b"b", 1), file(b"a", 1)],
        vec![file(b"a", 1), file(b"a/b", 1)],
        vec![link(b"a", b"b"), file(b"a/b", 1)],
        vec![file(b"nowhere/b", 1)],
        vec![directory(b"a"), file(b"a0", 1), file(b"b/x", 1)],
        vec![link(b"a", b"/etc")],
        vec![link(b"a", b"..")],
        vec![link(b"a", b"../b")],
        vec![directory(b"d"), link(b"d/a", b"../../b")],
        vec![link(b"a", b"b/../../c")],
        vec![link(b"a", b".."), file(b"b", 1)],
        vec![link(b"a", b"")],
        vec![link(b"a", b"x\0y")],
        vec![Entry { mode: 0o4755, ..file(b"a", 1) }],
        vec![Entry { mtime: Mtime { seconds: 0, nanos: 1_000_000_000 }, ..file(b"a", 1) }],
        vec![entry(b"a", EntryKind::File { len: 0, hash: [1; 32] })],
    ];
    for entries in hostile {
        let refused = decode(entries.clone());
        assert!(matches!(refused, Err(ManifestError::Path { .. })), "{entries:?} {refused:?}");
    }
}

#[test]
fn names_between_a_directory_and_its_contents_do_not_hide_it() {
    let entries = vec![
        directory(b"a"),
        directory(b"a-b"),
        file(b"a-b/c", 1),
        file(b"a.x", 1),
        directory(b"a/b"),
        file(b"a/b/c", 1),
        file(b"a/c", 1),
        file(b"a0", 1),
    ];
    assert!(decode(entries).is_ok());
}

#[test]
fn links_stay_inside_or_are_refused() {
    let inside: [(&[u8], &[u8]); 6] = [
        (b"l", b"a"),
        (b"l", b"a/b/"),
        (b"l", b"./a"),
        (b"d/l", b"../a"),
        (b"d/e/l", b"../../a"),
        (b"d/l", b".."),
    ];
    let outside: [(&[u8], &[u8]); 7] = [
        (b"l", b"/"),
        (b"l", b".."),
        (b"d/l", b"../.."),
        (b"d/l", b".././../a"),
        (b"l", b"a/../b"),
        (b"l", b""),
        (b"l", b"..//"),
    ];
    assert!(inside.iter().all(|(path, target)| stays_inside(path, target)));
    assert!(!outside.iter().any(|(path, target)| stays_inside(path, target)));
}

#[test]
fn the_number_of_packs_and_the_sum_of_lengths_must_fit() {
    let mut wrong = manifest(vec![file(b"a", 10)]);
    wrong.packs.push([0; 32]);
    assert!(matches!(Manifest::decode(&wrong.encode()), Err(ManifestError::Malformed(_))));
    wrong.packs.clear();
    assert!(matches!(Manifest::decode(&wrong.encode()), Err(ManifestError::Malformed(_))));
    let huge = vec![file(b"a", u64::MAX), file(b"b", u64::MAX)];
    assert!(matches!(decode(huge), Err(ManifestError::Malformed(_))));
    assert!(matches!(decode(vec![file(b"a", 1 << 50)]), Err(ManifestError::Malformed(_))));
}

#[test]
fn unknown_tails_are_skipped_and_broken_ones_refused() {
    let plain = manifest(vec![directory(b"d")]).encode();
    let at = plain.len() - 6;
    let with = |tail: &[u8]| {
        let mut bytes = plain[..at].to_vec();
        bytes.extend_from_slice(&(tail.len() as u16).to_le_bytes());
        bytes.extend_from_slice(tail);
        bytes.extend_from_slice(&plain[at + 2..]);
        Manifest::decode(&bytes)
    };
    assert_eq!(with(b""), Ok(manifest(vec![directory(b"d")])));
    assert_eq!(with(&[1, 0, 2, 0, 7, 7]), Ok(manifest(vec![directory(b"d")])));
    assert!(with(&[1, 0, 3, 0, 7, 7]).is_err());
    assert!(with(&[1]).is_err());
}

#[test]
fn the_bytes_are_what_they_were_in_version_1() {
    let entries = vec![directory(b"d"), file(b"d/f", 258), link(b"l", b"d/f")];
    let bytes = manifest(entries).encode();
    let mut golden = b"ABmanif1".to_vec();
    golden.extend([0, 64, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0]);
    let metadata = [160, 1, 254, 255, 255, 255, 255, 255, 255, 255, 5, 0, 0, 0];
    golden.push(1);
    golden.extend(metadata);
    golden.extend([1, 0, b'd', 0, 0]);
    golden.push(0);
    golden.extend(metadata);
    golden.extend([3, 0, b'd', b'/', b'f', 2, 1, 0, 0, 0, 0, 0, 0]);
    golden.extend([9; 32]);
    golden.extend([0, 0]);
    golden.push(2);
    golden.extend(metadata);
    golden.extend([1, 0, b'l', 3, 0, b'd', b'/', b'f', 0, 0]);
    golden.extend([8; 32]);
    golden.extend([0, 0, 0, 0]);
    assert_eq!(bytes, golden);
}

#[test]
fn announced_counts_allocate_nothing() {
    let mut bytes = b"ABmanif1".to_vec();
    bytes.extend([0, 64, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    assert!(Manifest::decode(&bytes).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Manifest::decode(&bytes);
        let _ = Manifest::decode(&[b"ABmanif1\0\x40\0\0", &bytes[..]].concat());
    }

    #[test]
    fn a_damaged_manifest_never_panics_and_what_decodes_is_canonical(
        at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let entries = vec![directory(b"d"), file(b"d/f", 258), link(b"l", b"d/f"), file(b"z", 9000)];
        let mut bytes = manifest(entries).encode();
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(decoded) = Manifest::decode(&bytes) {
            prop_assert_eq!(decoded.encode(), &bytes[..]);
        }
        let _ = Manifest::decode(&bytes[..cut.index(bytes.len())]);
    }
}
