//! A receiver's partial content: `DIR/.NAME.anabranch-ROOT/`, ROOT being the first 16 hexadecimal
//! digits of the content's identity.
//!
//! ```text
//! lock      held while a process works here
//! data      a file's bytes; of a directory: manifest (its bytes) and tree/ (its files)
//! outboard  unit values     pages  hash pages     record  what is on disk of all this
//! ```
//! The record is made last and by a rename, so where it is, the rest is.

use super::page_log::{Page, PageLog};
use super::record::{self, BootId, Decoded, Record};
use super::{OpenError, State, StorageError, Store, WriteError, writer};
use crate::content::files::{Files, First, allocate};
use crate::content::layout::Layout;
use crate::content::outboard::Outboard;
use crate::content::scan::Progress;
use crate::content::{GroupInfo, Kind, Scan, ScanError, ScanOptions};
use anabranch_proto::id::BlockIndex;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// The most bytes of a content's name in the name of its working directory.
const NAME_LEN_MAX: usize = 200;

/// The working directory of a content, locked.
#[derive(Debug)]
pub(super) struct Partial {
    /// The working directory.
    pub(super) work: PathBuf,
    /// The final name.
    pub(super) dest: PathBuf,
    /// Whether something different may be replaced.
    pub(super) overwrite: bool,
    /// Whether the disk failed to keep data: then nothing more may be claimed.
    broken: bool,
    /// Held until the content is finished or the process ends.
    _lock: File,
}

/// What is appended to while blocks come.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) record: Record,
    pub(super) pages: PageLog,
}

impl Partial {
    /// Puts blocks and pages on disk, then claims the blocks. What is done is removed from
    /// `blocks`.
    pub(super) fn flush(
        &mut self,
        store: &Store,
        layout: &Layout,
        blocks: &mut Vec<u32>,
    ) -> Result<(), StorageError> {
        let failed = |error| StorageError::of(&self.dest, error);
        if self.broken {
            return Err(failed(io::Error::other("an earlier write was lost, start again")));
        }
        let pages = store.journal().as_mut().and_then(|journal| journal.pages.take_unsynced());
        let synced = pages.map_or(Ok(()), |pages| pages.sync_data()).and_then(|()| {
            if blocks.is_empty() { Ok(()) } else { store.sync_blocks(layout, blocks) }
        });
        if let Err(error) = synced {
            return Err(self.give_up(store, error));
        }
        if blocks.is_empty() {
            return Ok(());
        }
        let claimed = match &mut *store.journal() {
            Some(journal) => journal.record.claim_synced(blocks),
            None => return Ok(()),
        };
        if let Err(error) = claimed.map_err(failed)?.sync_data() {
            return Err(self.give_up(store, error));
        }
        blocks.clear();
        Ok(())
    }

    /// A sync failed. The kernel may call the lost pages clean, and a second sync would succeed:
    /// nothing more is claimed, here or by the next process.
    fn give_up(&mut self, store: &Store, error: io::Error) -> StorageError {
        self.broken = true;
        if let Some(mut journal) = store.journal().take()
            && let Err(error) = journal.record.disown_written()
        {
            tracing::warn!(%error, "the record cannot be corrected: remove {}", self.work.display());
        }
        StorageError::of(&self.dest, error)
    }
}

/// Opens a receiver's store while the machine runs as `boot`: see [`Store::receive`].
pub(super) fn open(
    info: GroupInfo,
    dir: &Path,
    overwrite: bool,
    boot: BootId,
    progress: Progress<'_>,
) -> Result<Store, OpenError> {
    let dest = dir.join(info.name());
    let failed = |error| StorageError::of(&dest, error);
    let work = dir.join(work_name(&info));
    match find_existing(&info, &dest, progress)? {
        Existing::Nothing => {}
        Existing::Same(scan) => {
            if let Ok(_lock) = lock(&work, &dest, false) {
                let _ = fs::remove_dir_all(&work);
            }
            let store = Store::complete(*scan, info);
            store.state().finished = Some(dest);
            return Ok(store);
        }
        Existing::Different if overwrite => {}
        Existing::Different => return Err(OpenError::Exists { path: dest }),
    }
    fs::create_dir_all(dir).map_err(failed)?;
    let lock = lock(&work, &dest, true)?;
    let opened = match resume(&info, &work, boot).map_err(failed)? {
        Some(opened) => opened,
        None => begin(&info, dir, &work, boot)
            .inspect_err(|_| {
                // Nothing of use is there yet; the lock goes with it.
                let _ = fs::remove_dir_all(&work);
            })
            .map_err(failed)?,
    };
    let partial =
        Partial { work: work.clone(), dest: dest.clone(), overwrite, broken: false, _lock: lock };
    let store = Store {
        files: Files::partial(opened.first),
        outboard: Outboard::new(opened.outboard, info.block_size),
        state: Mutex::new(State::new(&info)),
        disk: Mutex::new(Some(partial)),
        journal: Mutex::new(Some(opened.journal)),
        path: dest,
        work,
        info,
    };
    restore(&store, &opened.held, &opened.pages)?;
    Ok(store)
}

enum Existing {
    Nothing,
    Same(Box<Scan>),
    Different,
}

/// What has the content's final name.
fn find_existing(
    info: &GroupInfo,
    dest: &Path,
    progress: Progress<'_>,
) -> Result<Existing, OpenError> {
    let metadata = match fs::symlink_metadata(dest) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Existing::Nothing),
        Err(error) => return Err(StorageError::of(dest, error).into()),
    };
    let alike = match info.kind {
        Kind::File { len, .. } => metadata.is_file() && metadata.len() == len,
        Kind::Directory { .. } => metadata.is_dir(),
    };
    if !alike {
        return Ok(Existing::Different);
    }
    let options = ScanOptions { block_size: Some(info.block_size), state_dir: None };
    match Scan::run(dest, &options, progress) {
        Ok(scan) if *scan.root() == info.root => Ok(Existing::Same(Box::new(scan))),
        Err(ScanError::Cancelled) => Err(OpenError::Cancelled),
        Ok(_) | Err(_) => Ok(Existing::Different),
    }
}

/// The name of a content's working directory.
fn work_name(info: &GroupInfo) -> OsString {
    let name = info.name().as_bytes();
    let root = blake3::Hash::from(info.root).to_hex();
    let mut work = b".".to_vec();
    work.extend_from_slice(&name[..name.len().min(NAME_LEN_MAX)]);
    work.extend_from_slice(b".anabranch-");
    work.extend_from_slice(&root.as_bytes()[..16]);
    OsString::from_vec(work)
}

/// Locks the working directory, which is made when `make` says so.
fn lock(work: &Path, dest: &Path, make: bool) -> Result<File, OpenError> {
    let failed = |error| StorageError::of(dest, error);
    loop {
        if make {
            DirBuilder::new().recursive(true).mode(0o700).create(work).map_err(failed)?;
        }
        check_own(work).map_err(failed)?;
        let path = work.join("lock");
        let file = match options().create(true).open(&path) {
            // The process that just finished removed the directory.
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(failed)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: dest.into() }),
            Err(TryLockError::Error(error)) => return Err(failed(error).into()),
        }
        let same = |there: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == there.ino());
        if !make || fs::metadata(&path).is_ok_and(same) {
            return Ok(file);
        }
    }
}

/// Refuses a working directory that another user laid out, where directories are shared: links in it
/// could lead anywhere.
fn check_own(work: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(work)?;
    if metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let what = format!("{} is not this user's directory: remove it", work.display());
    Err(io::Error::other(what))
}

/// What is open of a working directory.
struct Opened {
    first: First,
    outboard: Option<File>,
    journal: Journal,
    pages: Vec<Page>,
    /// The blocks that are there, and whether each is on disk; some are named as both, that first.
    held: Vec<(BlockIndex, bool)>,
}

/// Takes up what an earlier run left; `None` when there is nothing of use.
fn resume(info: &GroupInfo, work: &Path, boot: BootId) -> io::Result<Option<Opened>> {
    let record = if_there(options().open(work.join("record")))?;
    let first = if_there(options().open(first_path(info, work)))?;
    let (Some(mut record), Some(first)) = (record, first) else { return Ok(None) };
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut record, &mut bytes)?;
    if record::is_of_another_version(&bytes) {
        let work = work.display();
        tracing::warn!("{work} is of another version of anabranch: the download starts anew");
    }
    let decoded = record::decode(&bytes, boot).filter(|decoded| is_same_content(info, decoded));
    let Some(decoded) = decoded.filter(|_| is_first_right(info, &first)) else { return Ok(None) };
    let outboard = options().create(true).open(work.join("outboard"))?;
    let outboard = Outboard::is_needed(info.block_size).then_some(outboard);
    let (log, pages) = PageLog::open(options().create(true).open(work.join("pages"))?)?;
    let record = Record::resume(record, &decoded, boot)?;
    let synced = decoded.synced.iter().map(|block| (block, true));
    let written = decoded.written.iter().map(|block| (block, false));
    let held = synced.chain(written).collect();
    let first = First::File { file: first, len: info.first_tree_len(), mtime: OnceLock::new() };
    let journal = Journal { record, pages: log };
    Ok(Some(Opened { first, outboard, journal, pages, held }))
}

/// Whether a record is about these blocks. Another source of the same bytes does not matter.
fn is_same_content(info: &GroupInfo, decoded: &Decoded) -> bool {
    let there = &decoded.info;
    there.root == info.root
        && there.block_size == info.block_size
        && there.blocks == info.blocks
        && there.first_tree_len() == info.first_tree_len()
        && there.manifest_len() == info.manifest_len()
}

fn is_first_right(info: &GroupInfo, first: &File) -> bool {
    first.metadata().is_ok_and(|metadata| metadata.len() == info.first_tree_len())
}

/// Makes a new partial content in the (locked) working directory.
fn begin(info: &GroupInfo, dir: &Path, work: &Path, boot: BootId) -> io::Result<Opened> {
    for name in ["record", "data", "manifest", "outboard", "pages"] {
        if_there(fs::remove_file(work.join(name)))?;
    }
    for name in ["tree", "replaced"] {
        if_there(fs::remove_dir_all(work.join(name)))?;
    }
    let file = options().create(true).open(first_path(info, work))?;
    allocate(&file, info.first_tree_len())?;
    if let Kind::Directory { total_len, .. } = info.kind {
        let disk = nix::sys::statvfs::fstatvfs(&file)?;
        let free = u128::from(disk.blocks_available()) * u128::from(disk.fragment_size());
        if free < u128::from(total_len) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        DirBuilder::new().mode(0o700).create(work.join("tree"))?;
    }
    file.sync_all()?;
    let outboard = match Outboard::is_needed(info.block_size) {
        true => Some(options().create(true).open(work.join("outboard"))?),
        false => None,
    };
    let (log, pages) = PageLog::open(options().create(true).open(work.join("pages"))?)?;
    let temporary = work.join("record.tmp");
    fs::write(&temporary, record::header(info))?;
    let record = options().open(&temporary)?;
    record.sync_all()?;
    fs::rename(&temporary, work.join("record"))?;
    sync_directory(work)?;
    sync_directory(dir)?;
    let decoded = record::decode(&record::header(info), boot).expect("a header that was just made");
    let record = Record::resume(record, &decoded, boot)?;
    let first = First::File { file, len: info.first_tree_len(), mtime: OnceLock::new() };
    let journal = Journal { record, pages: log };
    Ok(Opened { first, outboard, journal, pages, held: Vec::new() })
}

/// Brings what was there into the store's state.
fn restore(store: &Store, held: &[(BlockIndex, bool)], pages: &[Page]) -> Result<(), OpenError> {
    let first_blocks = {
        let mut state = store.state();
        accept_all(&mut state, pages, |tree| tree == 0);
        let first_blocks = state.layout.blocks();
        let first = held.iter().filter(|(block, _)| *block < first_blocks);
        first.for_each(|&(block, is_synced)| state.restore(block, is_synced));
        first_blocks
    };
    if store.state().can_lay_out() {
        match writer::lay_out(store) {
            Ok(_) => {}
            Err(WriteError::Storage(error)) => return Err(error.into()),
            Err(error) => {
                return Err(OpenError::Damaged {
                    path: store.work.clone(),
                    why: error.to_string(),
                });
            }
        }
    }
    let mut state = store.state();
    if state.laid_out {
        accept_all(&mut state, pages, |tree| tree > 0);
        let rest = held.iter().filter(|(block, _)| *block >= first_blocks);
        rest.for_each(|&(block, is_synced)| state.restore(block, is_synced));
        if let Some(tree) = store.files.tree() {
            let (_, entries) = super::places(&state.layout, &state.blocks_unflushed);
            tree.add_made(entries);
        }
    }
    Ok(())
}

/// Pages that are not right are fetched again.
fn accept_all(state: &mut State, pages: &[Page], is_wanted: fn(u32) -> bool) {
    for (id, bytes) in pages.iter().filter(|(id, _)| is_wanted(id.tree)) {
        let _ = state.accept_page(*id, bytes);
    }
}

/// The directory that receives a directory's files.
pub(super) fn open_tree(work: &Path) -> io::Result<OwnedFd> {
    Ok(File::open(work.join("tree"))?.into())
}

/// Puts on disk which names a directory has.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Where tree 0 is in a working directory.
pub(super) fn first_path(info: &GroupInfo, work: &Path) -> PathBuf {
    work.join(match info.kind {
        Kind::File { .. } => "data",
        Kind::Directory { .. } => "manifest",
    })
}

/// Any error but that there is none is an error: what cannot be read now must not be replaced.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}
