//! Contents of every shape arrive as they are.

use crate::stage::{Stage, assert_same, number};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn arrives(len: usize, options: &[&str]) {
    let stage = Stage::new();
    let file = stage.file("content", len);
    let mut source = stage.send(&file, options);
    let end = stage.get("r", &source.ticket(), &["--linger", "0"]).end();
    assert_eq!(end.code, Some(0), "{len} bytes: {end:?}");
    assert_eq!(number(&end.last, "bytes_total"), len as u64);
    assert_same(&file, &stage.path("r/content"));
}

#[test]
fn an_empty_file_arrives() {
    arrives(0, &[]);
}

#[test]
fn a_file_of_one_byte_arrives() {
    arrives(1, &[]);
}

#[test]
fn a_file_that_ends_on_a_block_border_arrives() {
    arrives(3 * 65_536, &["--block-size", "64KiB"]);
}

#[test]
fn a_file_that_ends_one_byte_around_a_block_border_arrives() {
    arrives(3 * 65_536 - 1, &["--block-size", "64KiB"]);
    arrives(3 * 65_536 + 1, &["--block-size", "64KiB"]);
}

#[test]
fn a_directory_with_odd_names_arrives_with_every_name_mode_and_byte() {
    let stage = Stage::new();
    let top = stage.path("odd");
    std::fs::create_dir_all(top.join("empty directory")).unwrap();
    let names: [&[u8]; 7] =
        [b"-rf", b"new\nline", b" spaces ", b"\xff\xfe", b"quote'\"", b"..dots", b"\x1b[31mred"];
    for (index, name) in names.iter().enumerate() {
        let dir = top.join(OsStr::from_bytes(name));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(OsStr::from_bytes(name)), vec![index as u8; index * 40_000])
            .unwrap();
    }
    let script = top.join("run");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();

    let mut source = stage.send(&top, &[]);
    let end = stage.get("r", &source.ticket(), &["--linger", "0"]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(tree(&stage.path("r/odd")), tree(&top));
}

/// Every path below `top` with its mode and, for a file, its bytes.
fn tree(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let bytes = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path.strip_prefix(top).unwrap().to_owned(), (mode, bytes));
    }
    found
}
