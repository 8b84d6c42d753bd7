//! The file that is sent, the memory it goes to, and the check of what arrived.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

const CHUNK_LEN: usize = 1 << 20;

/// Writes `len` incompressible bytes, the same ones every time.
pub(crate) fn write_random(path: &Path, len: u64) -> io::Result<()> {
    let mut stream = blake3::Hasher::new_derive_key("onebox content").finalize_xof();
    let mut file = File::create(path)?;
    let mut chunk = vec![0; CHUNK_LEN];
    let mut left = len;
    while left > 0 {
        stream.fill(&mut chunk);
        let take = left.min(CHUNK_LEN as u64) as usize;
        file.write_all(&chunk[..take])?;
        left -= take as u64;
    }
    Ok(())
}

/// Writes and removes `len` bytes in `dir`, so that no contender pays for the machine's first
/// touch of that memory.
pub(crate) fn touch_memory(dir: &Path, len: u64) -> io::Result<()> {
    let path = dir.join("touch");
    let mut file = File::create(&path)?;
    let chunk = vec![1; CHUNK_LEN];
    for _ in 0..len.div_ceil(CHUNK_LEN as u64) {
        file.write_all(&chunk)?;
    }
    std::fs::remove_file(path)
}

/// The BLAKE3 hash of a file, read again from start to end.
pub(crate) fn hash(path: &Path) -> io::Result<blake3::Hash> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK_LEN];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hasher.finalize()),
            n => hasher.update(&chunk[..n]),
        };
    }
}
