//! Finding what is in a directory.

use super::files::mtime_of;
use super::manifest::{Entry, EntryKind, PATH_LEN_MAX, stays_inside};
use super::scan::ScanError;
use std::fs::{self, FileType, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most things a directory may hold.
const ENTRIES_MAX: usize = 4 << 20;

/// One thing found.
pub(crate) struct Found {
    /// As the manifest will list it; a file's hash is not known yet.
    pub(crate) entry: Entry,
    /// All that the file system says of it.
    pub(crate) metadata: Metadata,
}

/// Everything below `root`, ascending by path. Symbolic links are not followed, but refused when
/// they point outside; so is what is no file.
pub(crate) fn walk(root: &Path) -> Result<Vec<Found>, ScanError> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let at = root.join(&directory);
        let unreadable = |error| ScanError::Read { path: at.clone(), error };
        for item in fs::read_dir(&at).map_err(unreadable)? {
            let below = directory.join(item.map_err(unreadable)?.file_name());
            let one = look(root, &below)?;
            if one.entry.kind == EntryKind::Directory {
                directories.push(below);
            }
            if found.len() == ENTRIES_MAX {
                return Err(ScanError::TooLarge { path: root.to_owned(), what: "files" });
            }
            found.push(one);
        }
    }
    found.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
    Ok(found)
}

fn look(root: &Path, below: &Path) -> Result<Found, ScanError> {
    let path = root.join(below);
    let unreadable = |error| ScanError::Read { path: path.clone(), error };
    let metadata = fs::symlink_metadata(&path).map_err(unreadable)?;
    let kind = metadata.file_type();
    let below = below.as_os_str().as_bytes();
    if below.len() > PATH_LEN_MAX {
        return Err(ScanError::Read { path, error: std::io::ErrorKind::InvalidFilename.into() });
    }
    let kind = if kind.is_file() {
        let hash = if metadata.len() == 0 { *blake3::hash(b"").as_bytes() } else { [0; 32] };
        EntryKind::File { len: metadata.len(), hash }
    } else if kind.is_dir() {
        EntryKind::Directory
    } else if kind.is_symlink() {
        let target = fs::read_link(&path).map_err(unreadable)?.into_os_string().into_vec();
        if !stays_inside(below, &target) {
            return Err(ScanError::LinkOutside { path });
        }
        EntryKind::Symlink { target: target.into() }
    } else {
        return Err(ScanError::Special { path, what: special_name(kind) });
    };
    let mode = (metadata.mode() & 0o777) as u16;
    let mtime = mtime_of(&metadata);
    Ok(Found { entry: Entry { path: below.into(), mode, mtime, kind }, metadata })
}

/// What to call what is neither file nor directory.
pub(crate) fn special_name(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "named pipe"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "device"
    } else {
        "thing of unknown type"
    }
}
