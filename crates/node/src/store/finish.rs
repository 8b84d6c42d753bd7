//! Giving a complete content its final form and name.

use super::partial::{Partial, sync_directory};
use super::{FinishError, StorageError, Store};
use crate::content::files::{First, TreeFiles};
use crate::content::info::Mtime;
use crate::content::manifest::{Entry, EntryKind};
use crate::content::{GroupInfo, Kind};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, futimens, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::symlinkat;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// See [`Store::finish`].
pub(super) fn finish(store: &Store) -> Result<PathBuf, FinishError> {
    let mut disk = store.disk();
    if let Some(path) = store.final_path() {
        return Ok(path);
    }
    if !store.is_complete() {
        return Err(FinishError::Incomplete);
    }
    let partial = disk.as_mut().expect("what is not finished has a working directory");
    store.flush_partial(partial)?;
    let failed = |error| StorageError::of(&partial.dest, error);
    let formed = match (store.files.tree(), store.files.first()) {
        (Some(tree), _) => form_tree(&store.info, tree, &partial.work).map(|()| "tree"),
        (None, First::File { file, .. }) => form_file(&store.info, file).map(|()| "data"),
        (None, First::Memory(_)) => Err(io::ErrorKind::NotFound.into()),
    };
    let from = partial.work.join(formed.map_err(failed)?);
    put_in_place(partial, &from)?;
    if let Some(tree) = store.files.tree() {
        let (mode, _) = mode_and_mtime(&store.info);
        let top = nix::sys::stat::fchmod(tree.root(), Mode::from_bits_truncate(mode.into()));
        top.map_err(|error| failed(error.into()))?;
    }
    let parent = partial.dest.parent().unwrap_or(Path::new("."));
    sync_directory(parent).map_err(failed)?;
    store.files.settle().map_err(failed)?;
    if let Err(error) = fs::remove_dir_all(&partial.work) {
        tracing::warn!(path = %partial.work.display(), %error, "a working directory stays behind");
    }
    let dest = partial.dest.clone();
    store.state().finished = Some(dest.clone());
    *store.journal() = None;
    *disk = None;
    Ok(dest)
}

/// Renames `from` to the final name, which must not exist unless it may be replaced.
fn put_in_place(partial: &Partial, from: &Path) -> Result<(), FinishError> {
    let dest = &partial.dest;
    let failed = |error: io::Error| FinishError::from(StorageError::of(dest, error));
    match rename(from, dest, RenameFlags::RENAME_NOREPLACE) {
        Ok(()) => return Ok(()),
        Err(Errno::EEXIST) if !partial.overwrite => {
            return Err(FinishError::Exists { path: dest.clone() });
        }
        Err(Errno::EEXIST) => {}
        // A file system without such renames.
        Err(Errno::EINVAL | Errno::ENOSYS) => match fs::symlink_metadata(dest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return fs::rename(from, dest).map_err(failed);
            }
            _ if partial.overwrite => {}
            _ => return Err(FinishError::Exists { path: dest.clone() }),
        },
        Err(error) => return Err(failed(error.into())),
    }
    match rename(from, dest, RenameFlags::RENAME_EXCHANGE) {
        // What was replaced goes with the working directory.
        Ok(()) => Ok(()),
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            fs::rename(dest, partial.work.join("replaced")).map_err(failed)?;
            fs::rename(from, dest).map_err(failed)
        }
        Err(error) => Err(failed(error.into())),
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), Errno> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, flags)
}

fn form_file(info: &GroupInfo, file: &File) -> io::Result<()> {
    let (mode, mtime) = mode_and_mtime(info);
    file.set_permissions(Permissions::from_mode(mode.into()))?;
    futimens(file, &TimeSpec::UTIME_OMIT, &time_spec(mtime))?;
    file.sync_all()
}

/// Makes what has no blocks, then sets modes and times, what is deeper first: a directory's time
/// changes with what is put into it, and a read-only one takes nothing more.
fn form_tree(info: &GroupInfo, tree: &TreeFiles, work: &Path) -> io::Result<()> {
    let entries = &tree.manifest().entries;
    for (at, entry) in entries.iter().enumerate() {
        match &entry.kind {
            EntryKind::Directory => {
                tree.create_directory(&entry.path)?;
                // An earlier run may have come as far as setting modes.
                let open = Mode::from_bits_truncate(0o700);
                fchmodat(tree.root(), &entry.path[..], open, FchmodatFlags::FollowSymlink)?;
            }
            EntryKind::File { len: 0, .. } => _ = tree.file(at as u32, true)?,
            EntryKind::File { .. } => {}
            EntryKind::Symlink { target } => make_symlink(tree, entry, target)?,
        }
    }
    entries.iter().rev().try_for_each(|entry| set_metadata(tree, entry))?;
    let (mode, mtime) = mode_and_mtime(info);
    let top = File::open(work.join("tree"))?;
    // A directory that may not be written cannot be moved: its mode is set after that.
    top.set_permissions(Permissions::from_mode(u32::from(mode) | 0o700))?;
    futimens(&top, &TimeSpec::UTIME_OMIT, &time_spec(mtime))?;
    tree.sync_all()
}

fn make_symlink(tree: &TreeFiles, entry: &Entry, target: &[u8]) -> io::Result<()> {
    match symlinkat(target, tree.root(), &entry.path[..]) {
        // An earlier run came so far.
        Err(Errno::EEXIST) => Ok(()),
        result => Ok(result?),
    }
}

fn set_metadata(tree: &TreeFiles, entry: &Entry) -> io::Result<()> {
    let path = &entry.path[..];
    let times = (&TimeSpec::UTIME_OMIT, &time_spec(entry.mtime));
    let follow = match entry.kind {
        EntryKind::Symlink { .. } => UtimensatFlags::NoFollowSymlink,
        _ => UtimensatFlags::FollowSymlink,
    };
    if !matches!(entry.kind, EntryKind::Symlink { .. }) {
        let mode = Mode::from_bits_truncate(entry.mode.into());
        fchmodat(tree.root(), path, mode, FchmodatFlags::FollowSymlink)?;
    }
    Ok(utimensat(tree.root(), path, times.0, times.1, follow)?)
}

fn mode_and_mtime(info: &GroupInfo) -> (u16, Mtime) {
    let (Kind::File { mode, mtime, .. } | Kind::Directory { mode, mtime, .. }) = info.kind;
    (mode, mtime)
}

fn time_spec(mtime: Mtime) -> TimeSpec {
    TimeSpec::new(mtime.seconds, mtime.nanos.into())
}
