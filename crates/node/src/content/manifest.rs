//! The list of what a directory holds: its canonical bytes are what the directory's identity
//! hashes.
//!
//! ```text
//! "ABmanif1"  block_size: u32  entries: u32  packs: u32
//! per entry, ascending by path bytes, no path twice:
//!     type: u8 (0 file, 1 directory, 2 symbolic link)   mode: u16 (within 0o777)
//!     seconds: i64  nanos: u32   path: u16 length, bytes
//!     file: length u64, BLAKE3 [32]      symbolic link: target: u16 length, bytes
//!     tail: u16 length, bytes: (type: u16, length: u16, bytes)*, unknown types skipped
//! per pack: BLAKE3 [32]
//! tail: u32 length, bytes: as above
//! ```
//! All numbers are little endian. A path is relative, its components are separated by single
//! slashes; every directory above an entry is an entry itself. The block size is in the bytes
//! because it decides which files are packed ([`super::layout`]).

use super::info::{MANIFEST_LEN_MAX, Mtime, is_file_name};
use super::{BLOCKS_MAX, is_block_size, layout};
use thiserror::Error;

/// The most bytes a path may have.
pub const PATH_LEN_MAX: usize = 4000;
const MAGIC: &[u8; 8] = b"ABmanif1";
/// The shortest entry: a directory with a name of one byte.
const ENTRY_LEN_MIN: usize = 1 + 2 + 8 + 4 + 2 + 1 + 2;

/// What a directory holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The block size that decides which files are packed, in bytes.
    pub block_size: u32,
    /// Ascending by path.
    pub entries: Vec<Entry>,
    /// The root of each pack.
    pub packs: Vec<[u8; 32]>,
}

/// One thing in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its path below the directory: bytes, not always UTF-8.
    pub path: Box<[u8]>,
    /// Its permission bits, within 0o777.
    pub mode: u16,
    /// When it was modified.
    pub mtime: Mtime,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A file.
    File {
        /// Its length in bytes.
        len: u64,
        /// Its BLAKE3, what `b3sum` prints.
        hash: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symbolic link that stays inside the directory.
    Symlink {
        /// What it points to.
        target: Box<[u8]>,
    },
}

/// Why bytes are no manifest.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ManifestError {
    /// They end early, go on too long or hold numbers out of range.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// A path that could lead elsewhere or cannot be created.
    #[error("it names {path:?}, which is refused: {why}")]
    Path {
        /// The path, odd bytes replaced.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl Manifest {
    /// The canonical bytes. The entries must be in order.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.entries.len() * 100 + self.packs.len() * 32);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.block_size.to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.packs.len() as u32).to_le_bytes());
        for entry in &self.entries {
            entry.encode(&mut out);
        }
        for pack in &self.packs {
            out.extend_from_slice(pack);
        }
        out.extend_from_slice(&0u32.to_le_bytes());
        out
    }

    /// Reads canonical bytes and checks everything that is said above.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() as u64 > MANIFEST_LEN_MAX {
            return Err(ManifestError::Malformed("too long"));
        }
        let mut reader = Reader(bytes);
        if reader.array::<8>()? != *MAGIC {
            return Err(ManifestError::Malformed("it is not one, or of a later version"));
        }
        let block_size = u32::from_le_bytes(reader.array()?);
        if !is_block_size(block_size) {
            return Err(ManifestError::Malformed("block size"));
        }
        let entry_count = u32::from_le_bytes(reader.array()?) as usize;
        let pack_count = u32::from_le_bytes(reader.array()?) as usize;
        if entry_count > reader.0.len() / ENTRY_LEN_MIN || pack_count > reader.0.len() / 32 {
            return Err(ManifestError::Malformed("it announces more than it holds"));
        }
        let mut entries = Vec::with_capacity(entry_count);
        for _ in 0..entry_count {
            entries.push(Entry::decode(&mut reader)?);
        }
        let packs = (0..pack_count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let tail_len = u32::from_le_bytes(reader.array()?) as usize;
        check_tail(reader.take(tail_len)?)?;
        if !reader.0.is_empty() {
            return Err(ManifestError::Malformed("more bytes than expected"));
        }
        let manifest = Manifest { block_size, entries, packs };
        manifest.check()?;
        Ok(manifest)
    }

    /// The lengths of all files added up, in bytes, and how many files there are; `None` when the
    /// sum does not fit.
    pub fn totals(&self) -> Option<(u64, u32)> {
        let lens = self.entries.iter().filter_map(|entry| match entry.kind {
            EntryKind::File { len, .. } => Some(len),
            _ => None,
        });
        let mut totals = (0u64, 0u32);
        for len in lens {
            totals = (totals.0.checked_add(len)?, totals.1 + 1);
        }
        Some(totals)
    }

    /// Sets the hash of the file at place `entry`.
    pub fn set_hash(&mut self, entry: u32, of_file: [u8; 32]) {
        if let EntryKind::File { hash, .. } = &mut self.entries[entry as usize].kind {
            *hash = of_file;
        }
    }

    fn check(&self) -> Result<(), ManifestError> {
        let mut above = Ancestors::default();
        for entry in &self.entries {
            entry.check().and_then(|()| above.enter(entry)).map_err(|why| ManifestError::Path {
                path: String::from_utf8_lossy(&entry.path).into_owned(),
                why,
            })?;
        }
        self.totals().ok_or(ManifestError::Malformed("lengths do not add up"))?;
        let layout = layout::Layout::directory(self, 0).filter(|all| all.blocks() <= BLOCKS_MAX);
        match layout {
            None => Err(ManifestError::Malformed("too many blocks")),
            Some(layout) if layout.packs() != self.packs.len() => {
                Err(ManifestError::Malformed("the number of packs does not match the files"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            EntryKind::File { .. } => 0,
            EntryKind::Directory => 1,
            EntryKind::Symlink { .. } => 2,
        });
        out.extend_from_slice(&self.mode.to_le_bytes());
        out.extend_from_slice(&self.mtime.seconds.to_le_bytes());
        out.extend_from_slice(&self.mtime.nanos.to_le_bytes());
        out.extend_from_slice(&(self.path.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.path);
        match &self.kind {
            EntryKind::File { len, hash } => {
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(hash);
            }
            EntryKind::Directory => {}
            EntryKind::Symlink { target } => {
                out.extend_from_slice(&(target.len() as u16).to_le_bytes());
                out.extend_from_slice(target);
            }
        }
        out.extend_from_slice(&0u16.to_le_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Entry, ManifestError> {
        let [kind] = reader.array()?;
        let mode = u16::from_le_bytes(reader.array()?);
        let seconds = i64::from_le_bytes(reader.array()?);
        let nanos = u32::from_le_bytes(reader.array()?);
        let path = reader.short()?.into();
        let kind = match kind {
            0 => {
                let len = u64::from_le_bytes(reader.array()?);
                EntryKind::File { len, hash: reader.array()? }
            }
            1 => EntryKind::Directory,
            2 => EntryKind::Symlink { target: reader.short()?.into() },
            _ => return Err(ManifestError::Malformed("an entry of unknown type")),
        };
        check_tail(reader.short()?)?;
        Ok(Entry { path, mode, mtime: Mtime { seconds, nanos }, kind })
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.mode > 0o777 || self.mtime.nanos >= 1_000_000_000 {
            return Err("its mode or time is out of range");
        }
        if self.path.len() > PATH_LEN_MAX {
            return Err("the path is too long");
        }
        if !self.path.split(|&byte| byte == b'/').all(is_file_name) {
            return Err("a component is empty, `.`, `..`, too long or has a NUL");
        }
        match &self.kind {
            EntryKind::File { len, hash } if *len == 0 && hash != blake3::hash(b"").as_bytes() => {
                Err("an empty file with another hash than that of nothing")
            }
            EntryKind::Symlink { target } if !stays_inside(&self.path, target) => {
                Err("a symbolic link that points outside the directory")
            }
            _ => Ok(()),
        }
    }
}

/// Whether a symbolic link at `path` with this target stays inside the directory, by its text
/// alone: relative, and at no point above the directory.
///
/// A target is judged component by component, so one that climbs through another link could be
/// misjudged; `..` is therefore allowed only in front, where what it leaves are real directories.
pub fn stays_inside(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.len() > PATH_LEN_MAX || target.contains(&0) || target[0] == b'/'
    {
        return false;
    }
    let depth = path.iter().filter(|&&byte| byte == b'/').count();
    let components: Vec<&[u8]> =
        target.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    let climbs = components.iter().take_while(|part| **part == b"..").count();
    climbs <= depth && !components[climbs..].contains(&&b".."[..])
}

/// The directories above the next entry, and the order of what came before.
#[derive(Default)]
struct Ancestors<'a> {
    last: Option<&'a [u8]>,
    directories: Vec<&'a [u8]>,
}

impl<'a> Ancestors<'a> {
    /// Checks that `entry` follows what came before and lies in a directory.
    fn enter(&mut self, entry: &'a Entry) -> Result<(), &'static str> {
        let path = &*entry.path;
        if self.last.is_some_and(|last| last >= path) {
            return Err("it is there twice or out of order");
        }
        self.last = Some(path);
        // Between a directory and what is below it, names that sort before '/' may come
        // (`a`, `a-b`, `a/c`): a directory is left only when the path passes it for good.
        while let Some(directory) = self.directories.last()
            && path > &after(directory)[..]
            && !is_below(path, directory)
        {
            self.directories.pop();
        }
        if let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
            let parent = &path[..slash];
            if !self.directories.iter().rev().any(|directory| *directory == parent) {
                return Err("it is not in a directory of the manifest");
            }
        }
        if entry.kind == EntryKind::Directory {
            self.directories.push(path);
        }
        Ok(())
    }
}

/// What sorts behind everything below `directory`.
fn after(directory: &[u8]) -> Vec<u8> {
    [directory, b"0"].concat()
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn check_tail(tail: &[u8]) -> Result<(), ManifestError> {
    let mut reader = Reader(tail);
    while !reader.0.is_empty() {
        reader.array::<2>()?;
        reader.short()?;
    }
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], ManifestError> {
        let (taken, rest) =
            self.0.split_at_checked(len).ok_or(ManifestError::Malformed("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let (taken, rest) =
            self.0.split_first_chunk().ok_or(ManifestError::Malformed("it ends early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Bytes behind their length in 16 bits.
    fn short(&mut self) -> Result<&'a [u8], ManifestError> {
        let len = u16::from_le_bytes(self.array()?);
        self.take(usize::from(len))
    }
}

#[cfg(test)]
mod tests;
