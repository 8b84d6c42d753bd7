//! A single-file torrent, and the bencoding it needs.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes per piece: what common torrent makers choose for a file of about a gigabyte.
const PIECE_LEN: usize = 1 << 20;

/// The bytes of the `.torrent` file for `path`, with the tracker at `announce`.
pub(crate) fn describe(path: &Path, name: &str, announce: &str) -> io::Result<Vec<u8>> {
    let (pieces, len) = piece_hashes(path)?;
    let mut bytes = format!("d8:announce{}:{announce}4:info", announce.len()).into_bytes();
    bytes.extend_from_slice(format!("d6:lengthi{len}e4:name{}:{name}", name.len()).as_bytes());
    bytes.extend_from_slice(format!("12:piece lengthi{PIECE_LEN}e").as_bytes());
    bytes.extend_from_slice(format!("6:pieces{}:", pieces.len()).as_bytes());
    bytes.extend_from_slice(&pieces);
    bytes.extend_from_slice(b"ee");
    Ok(bytes)
}

fn piece_hashes(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_LEN];
    let (mut hashes, mut total) = (Vec::new(), 0);
    loop {
        let len = read_full(&mut file, &mut piece)?;
        if len == 0 {
            return Ok((hashes, total));
        }
        total += len as u64;
        hashes.extend_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &piece[..len]).as_ref());
    }
}

fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}
