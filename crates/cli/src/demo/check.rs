//! The demo's own look at files: random content, room on the disk, and hashes of whole trees,
//! made without any of the code that moved them.

use crate::failure::Failure;
use crate::units::show_size;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CHUNK_LEN: usize = 1 << 20;

/// A file or directory: for each file its path below the top (empty for a file alone), length and
/// BLAKE3 hash.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Tree {
    files: BTreeMap<PathBuf, (u64, blake3::Hash)>,
}

impl Tree {
    /// Reads and hashes everything at `path`. Symbolic links count as what they say, not as what
    /// they point to.
    pub(super) fn read(path: &Path) -> io::Result<Tree> {
        let mut files = BTreeMap::new();
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            let full = if below.as_os_str().is_empty() { path.into() } else { path.join(&below) };
            let kind = std::fs::symlink_metadata(&full)?.file_type();
            if kind.is_dir() {
                for entry in std::fs::read_dir(&full)? {
                    left.push(below.join(entry?.file_name()));
                }
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&full)?;
                files.insert(below, (0, blake3::hash(target.as_os_str().as_bytes())));
            } else {
                files.insert(below, hash(&full)?);
            }
        }
        Ok(Tree { files })
    }

    /// Bytes in all files.
    pub(super) fn len(&self) -> u64 {
        self.files.values().map(|(len, _)| len).sum()
    }
}

fn hash(path: &Path) -> io::Result<(u64, blake3::Hash)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK_LEN];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((hasher.count(), hasher.finalize())),
            n => hasher.update(&chunk[..n]),
        };
    }
}

/// What is in a directory that must hold one thing.
pub(super) fn only_entry(dir: &Path) -> io::Result<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(dir)?.collect::<io::Result<_>>()?;
    match entries.as_slice() {
        [entry] => Ok(entry.path()),
        _ => Err(io::Error::other(format!("{} entries instead of one", entries.len()))),
    }
}

/// Writes `len` bytes that cannot be compressed, other ones in every run.
pub(super) fn write_random(path: &Path, len: u64) -> io::Result<()> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let mut stream = blake3::Hasher::new_keyed(&seed).finalize_xof();
    let mut file = File::create(path)?;
    let mut chunk = vec![0; CHUNK_LEN];
    let mut left = len;
    while left > 0 {
        let take = left.min(CHUNK_LEN as u64) as usize;
        stream.fill(&mut chunk[..take]);
        file.write_all(&chunk[..take])?;
        left -= take as u64;
    }
    Ok(())
}

/// Refuses when `dir` has not `needed` bytes of room.
pub(super) fn has_room(dir: &Path, needed: u64) -> Result<(), Failure> {
    // Where it cannot be asked, the disk itself will say so.
    let Ok(stat) = nix::sys::statvfs::statvfs(dir) else { return Ok(()) };
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    if free >= needed {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(dir).display();
    Err(Failure::storage(format!(
        "the copies need {} and {parent} has {} free; set TMPDIR to a larger disk, or choose fewer \
         --receivers or a smaller --size",
        show_size(needed),
        show_size(free)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_equal_when_every_file_is() {
        let dir = tempfile::tempdir().unwrap();
        for top in ["a", "b"] {
            std::fs::create_dir_all(dir.path().join(top).join("deep")).unwrap();
            std::fs::write(dir.path().join(top).join("deep/file"), "text").unwrap();
        }
        let read = |top: &str| Tree::read(&dir.path().join(top)).unwrap();
        assert_eq!(read("a"), read("b"));
        assert_eq!(read("a").len(), 4);
        std::fs::write(dir.path().join("b/deep/file"), "tent").unwrap();
        assert_ne!(read("a"), read("b"));
    }

    #[test]
    fn random_content_has_its_length_and_differs_between_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        write_random(&a, 3_000_001).unwrap();
        write_random(&b, 3_000_001).unwrap();
        assert_eq!(Tree::read(&a).unwrap().len(), 3_000_001);
        assert_ne!(Tree::read(&a).unwrap(), Tree::read(&b).unwrap());
    }

    #[test]
    fn a_disk_without_room_is_told_of_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        assert!(has_room(dir.path(), 0).is_ok());
        assert_eq!(has_room(dir.path(), u64::MAX).unwrap_err().code, 6);
    }
}
