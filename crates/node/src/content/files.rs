//! The bytes of a content on the local disk, addressed by the pieces of [`super::layout`].

use super::info::Mtime;
use super::layout::{Piece, Place};
use super::manifest::{Entry, EntryKind, Manifest};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate, openat};
use nix::sys::stat::{Mode, mkdirat};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many files of a directory are kept open.
const OPEN_MAX: usize = 64;

/// Up to so many files are put on disk one by one. More are with their whole file system at once,
/// which waits for what others wrote there, too: seconds on a busy disk.
const SYNC_EACH_MAX: usize = 64;

/// A content's bytes.
#[derive(Debug)]
pub struct Files {
    first: First,
    tree: OnceLock<TreeFiles>,
    /// Whether the files are finished, so that a change of one means that it must not be served.
    settled: AtomicBool,
}

/// Where tree 0 is.
#[derive(Debug)]
pub enum First {
    /// In a file; once settled it must keep this length and time.
    File {
        /// The file.
        file: File,
        /// Its length in bytes.
        len: u64,
        /// When it was modified, from when it is settled on.
        mtime: OnceLock<Mtime>,
    },
    /// In memory: the manifest.
    Memory(Vec<u8>),
}

/// The files of a directory.
#[derive(Debug)]
pub struct TreeFiles {
    root: OwnedFd,
    manifest: Arc<Manifest>,
    /// Files open now, the one used last at the end.
    open: Mutex<Vec<OpenFile>>,
    /// Files that were made and whose names are not on disk yet.
    made: Mutex<BTreeSet<u32>>,
}

#[derive(Debug)]
struct OpenFile {
    entry: u32,
    writable: bool,
    file: Arc<File>,
}

impl Files {
    /// Finished files, a source's: a change of one is an error of [`Files::read`].
    pub fn settled(first: First) -> Files {
        Files { first, tree: OnceLock::new(), settled: AtomicBool::new(true) }
    }

    /// Files that are being received.
    pub fn partial(first: First) -> Files {
        Files { first, tree: OnceLock::new(), settled: AtomicBool::new(false) }
    }

    /// Adds the files below the directory `root`. A second call changes nothing.
    pub fn add_tree(&self, root: OwnedFd, manifest: Arc<Manifest>) {
        let open = Mutex::new(Vec::new());
        // Losing a race is harmless: both trees are the same directory.
        let made = Mutex::default();
        let _ = self.tree.set(TreeFiles { root, manifest, open, made });
    }

    /// Tree 0.
    pub fn first(&self) -> &First {
        &self.first
    }

    /// The same files with another tree 0: a scan learns the manifest last.
    pub fn with_first(self, first: First) -> Files {
        Files { first, ..self }
    }

    /// The files below the directory, once known.
    pub fn tree(&self) -> Option<&TreeFiles> {
        self.tree.get()
    }

    /// Says that the files have their final form: from now on they may only be read. A single
    /// file's own time becomes what it must keep.
    pub fn settle(&self) -> io::Result<()> {
        if let First::File { file, mtime, .. } = &self.first
            && self.tree.get().is_none()
        {
            let _ = mtime.set(mtime_of(&file.metadata()?));
        }
        if let Some(tree) = self.tree.get() {
            tree.open().clear();
        }
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Fills `buf` from a piece of the same length. It is an error when a settled file has
    /// changed, and then `buf` holds nothing of use.
    pub fn read(&self, piece: Piece, buf: &mut [u8]) -> io::Result<()> {
        debug_assert_eq!(piece.len as usize, buf.len());
        let settled = self.settled.load(Ordering::Acquire);
        match (piece.place, &self.first) {
            (Place::First, First::Memory(bytes)) => {
                let from = piece.offset as usize;
                let bytes =
                    bytes.get(from..from + buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
                buf.copy_from_slice(bytes);
                Ok(())
            }
            (Place::First, First::File { file, len, mtime }) => {
                file.read_exact_at(buf, piece.offset)?;
                match mtime.get() {
                    Some(mtime) if settled => check_unchanged(&file.metadata()?, *len, *mtime),
                    _ => Ok(()),
                }
            }
            (Place::Entry(entry), _) => {
                let tree = self.tree.get().ok_or(io::ErrorKind::NotFound)?;
                let file = tree.file(entry, false)?;
                file.read_exact_at(buf, piece.offset)?;
                let entry = &tree.manifest.entries[entry as usize];
                match entry.kind {
                    EntryKind::File { len, .. } if settled => {
                        check_unchanged(&file.metadata()?, len, entry.mtime)
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Writes a piece.
    pub fn write(&self, piece: Piece, bytes: &[u8]) -> io::Result<()> {
        debug_assert_eq!(piece.len as usize, bytes.len());
        match (piece.place, &self.first) {
            (Place::First, First::File { file, .. }) => file.write_all_at(bytes, piece.offset),
            (Place::First, First::Memory(_)) => Err(io::ErrorKind::PermissionDenied.into()),
            (Place::Entry(entry), _) => {
                let tree = self.tree.get().ok_or(io::ErrorKind::NotFound)?;
                tree.file(entry, true)?.write_all_at(bytes, piece.offset)
            }
        }
    }
}

impl TreeFiles {
    /// The directory.
    pub fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// What is in it.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// The file of an entry, opened, and made with its whole length when it is written first.
    pub fn file(&self, entry: u32, write: bool) -> io::Result<Arc<File>> {
        let mut open = self.open();
        let found = open.iter().rposition(|one| one.entry == entry && (one.writable || !write));
        if let Some(at) = found {
            let one = open.remove(at);
            let file = Arc::clone(&one.file);
            open.push(one);
            return Ok(file);
        }
        drop(open);
        let entry_at = &self.manifest.entries[entry as usize];
        let file =
            Arc::new(if write { self.create(entry, entry_at)? } else { self.open_read(entry_at)? });
        let mut open = self.open();
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push(OpenFile { entry, writable: write, file: Arc::clone(&file) });
        Ok(file)
    }

    fn open_read(&self, entry: &Entry) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        Ok(File::from(openat(&self.root, &entry.path[..], flags, Mode::empty())?))
    }

    fn create(&self, number: u32, entry: &Entry) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o600);
        let fd = match openat(&self.root, &entry.path[..], flags, mode) {
            Err(Errno::ENOENT) => {
                self.create_above(&entry.path)?;
                openat(&self.root, &entry.path[..], flags, mode)?
            }
            fd => fd?,
        };
        let file = File::from(fd);
        if let EntryKind::File { len, .. } = entry.kind
            && file.metadata()?.len() != len
        {
            self.made().insert(number);
            allocate(&file, len)?;
        }
        Ok(file)
    }

    /// Puts on disk what was written to these files, and that they exist.
    pub fn sync(&self, entries: &BTreeSet<u32>) -> io::Result<()> {
        let made: BTreeSet<u32> = self.made().intersection(entries).copied().collect();
        if entries.len() > SYNC_EACH_MAX {
            nix::unistd::syncfs(&self.root)?;
        } else {
            entries.iter().try_for_each(|&entry| self.file(entry, true)?.sync_data())?;
            self.sync_above(&made)?;
        }
        self.made().retain(|entry| !made.contains(entry));
        Ok(())
    }

    /// Counts these files among the new ones, whose names may not be on disk: an earlier process
    /// made them and was killed.
    pub fn add_made(&self, entries: BTreeSet<u32>) {
        self.made().extend(entries);
    }

    /// Puts everything in the directory on disk, with modes, times and names.
    pub fn sync_all(&self) -> io::Result<()> {
        let entries = &self.manifest.entries;
        if entries.len() > SYNC_EACH_MAX {
            return Ok(nix::unistd::syncfs(&self.root)?);
        }
        let mut each = entries.iter().rev().filter(|entry| match entry.kind {
            EntryKind::File { .. } | EntryKind::Directory => true,
            EntryKind::Symlink { .. } => false,
        });
        let synced = each.try_for_each(|entry| self.open_read(entry)?.sync_all());
        match synced {
            // A mode that does not even let its owner read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(nix::unistd::syncfs(&self.root)?)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(nix::unistd::fsync(&self.root)?),
        }
    }

    /// Puts on disk which names the directories above these entries have.
    fn sync_above(&self, entries: &BTreeSet<u32>) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut above = BTreeSet::from([&b"."[..]]);
        for &entry in entries {
            let path = &self.manifest.entries[entry as usize].path;
            let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
            above.extend(slashes.map(|(slash, _)| &path[..slash]));
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        above.into_iter().try_for_each(|path| {
            File::from(openat(&self.root, path, flags, Mode::empty())?).sync_all()
        })
    }

    /// Makes the directories above `path`.
    pub fn create_above(&self, path: &[u8]) -> io::Result<()> {
        for (slash, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
            self.create_directory(&path[..slash])?;
        }
        Ok(())
    }

    /// Makes a directory, for this user alone until all is there; one that exists is left as it is.
    pub fn create_directory(&self, path: &[u8]) -> io::Result<()> {
        match mkdirat(&self.root, path, Mode::from_bits_truncate(0o700)) {
            Err(Errno::EEXIST) => Ok(()),
            result => Ok(result?),
        }
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives `file` its length and, where the file system can, its space on disk.
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    let signed = i64::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if len > 0 {
        match fallocate(file, FallocateFlags::empty(), 0, signed) {
            Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    file.set_len(len)
}

/// When a file was modified.
pub fn mtime_of(metadata: &Metadata) -> Mtime {
    Mtime { seconds: metadata.mtime(), nanos: metadata.mtime_nsec() as u32 }
}

fn check_unchanged(metadata: &Metadata, len: u64, mtime: Mtime) -> io::Result<()> {
    let now = mtime_of(metadata);
    // Some file systems keep whole seconds only.
    let same_time = now == mtime || (now.nanos == 0 && now.seconds == mtime.seconds);
    if metadata.len() == len && same_time {
        return Ok(());
    }
    Err(io::Error::other(Changed))
}

/// Inside an [`io::Error`]: a settled file is not what was hashed any more.
#[derive(Debug, thiserror::Error)]
#[error("the file has changed since it was hashed")]
pub struct Changed;

/// Whether a read failed because the file changed.
pub fn is_change(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
        || error.get_ref().is_some_and(|inner| inner.is::<Changed>())
}
