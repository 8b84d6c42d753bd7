//! A single-file torrent, and the bencoding it needs.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes per piece: about a thousand pieces, as common torrent makers choose; 1 MiB for a gigabyte.
fn piece_len(len: u64) -> usize {
    (len / 1024).next_power_of_two().clamp(16 << 10, 4 << 20) as usize
}

/// The bytes of the `.torrent` file for `path`, with the tracker at `announce`.
pub(crate) fn describe(path: &Path, name: &str, announce: &str) -> io::Result<Vec<u8>> {
    let piece_len = piece_len(std::fs::metadata(path)?.len());
    let (pieces, len) = piece_hashes(path, piece_len)?;
    let mut bytes = format!("d8:announce{}:{announce}4:info", announce.len()).into_bytes();
    bytes.extend_from_slice(format!("d6:lengthi{len}e4:name{}:{name}", name.len()).as_bytes());
    bytes.extend_from_slice(format!("12:piece lengthi{piece_len}e").as_bytes());
    bytes.extend_from_slice(format!("6:pieces{}:", pieces.len()).as_bytes());
    bytes.extend_from_slice(&pieces);
    bytes.extend_from_slice(b"ee");
    Ok(bytes)
}

fn piece_hashes(path: &Path, piece_len: usize) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; piece_len];
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
