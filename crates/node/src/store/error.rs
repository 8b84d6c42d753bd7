//! What can go wrong with a store, one enum per operation.

use crate::content::Failure;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The local disk failed.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The disk is full.
    #[error("no space left for {}: free some and run the same command again, it goes on from here", path.display())]
    Full {
        /// What was written.
        path: PathBuf,
    },
    /// Permission denied.
    #[error("no permission to write {}: choose another directory with -o", path.display())]
    Permission {
        /// What was written.
        path: PathBuf,
    },
    /// Any other failure.
    #[error("{} cannot be written: {error}", path.display())]
    Io {
        /// What was written.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Why a receiver's store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Something different has the content's name.
    #[error("{} exists and is something else: move it away, choose another directory with -o, or pass --overwrite", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// Another process receives the same content into the same directory.
    #[error("{} is being fetched by another process", path.display())]
    InUse {
        /// The destination.
        path: PathBuf,
    },
    /// What an earlier run left is not what it recorded.
    #[error("{} is damaged ({why}): remove it and run the same command again", path.display())]
    Damaged {
        /// The working directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The local disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The progress callback asked to stop.
    #[error("interrupted")]
    Cancelled,
}

/// Why a hash page was not taken.
#[derive(Debug, Error)]
pub enum PageError {
    /// It does not merge to the value it must have: the peer that sent it is to blame.
    #[error("a page of hashes is not what the source made")]
    Corrupt,
    /// No such page, or what it is checked against is not known yet.
    #[error("a page of hashes that was not asked for")]
    Unknown,
    /// The local disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a block cannot be received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// Its value is not known yet, or there is no such block.
    #[error("a block that cannot be verified yet")]
    NotVerifiable,
    /// Its length is not what the source made: the peer that sent it is to blame.
    #[error("a block of the wrong length")]
    Length,
    /// Its proof is not what the source made: the peer that sent it is to blame.
    #[error("a block with a wrong proof")]
    Corrupt,
}

/// Why a block's bytes were not taken.
#[derive(Debug, Error)]
pub enum WriteError {
    /// They are not what the source made, or not as many: the peer that sent them is to blame.
    #[error("a block is not what the source made")]
    Corrupt,
    /// The source's hashes contradict each other: the group cannot be received.
    #[error("the source contradicts itself: {0}")]
    Contradiction(String),
    /// The local disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a complete content did not get its final name.
#[derive(Debug, Error)]
pub enum FinishError {
    /// Blocks are missing.
    #[error("not every block is there yet")]
    Incomplete,
    /// Something came to be there meanwhile.
    #[error("{} came into being meanwhile: move it away and run the same command again", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// The local disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl StorageError {
    /// What became of writing `path`.
    pub fn of(path: &Path, error: io::Error) -> StorageError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StorageError::Full { path }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StorageError::Permission { path }
            }
            _ => StorageError::Io { path, error },
        }
    }
}

impl OpenError {
    /// What kind of failure it is.
    pub fn failure(&self) -> Failure {
        match self {
            OpenError::Cancelled => Failure::Cancelled,
            OpenError::Damaged { .. } => Failure::Integrity,
            OpenError::Exists { .. } | OpenError::InUse { .. } | OpenError::Storage(_) => {
                Failure::Storage
            }
        }
    }
}

impl WriteError {
    /// What kind of failure it is.
    pub fn failure(&self) -> Failure {
        match self {
            WriteError::Storage(_) => Failure::Storage,
            WriteError::Corrupt | WriteError::Contradiction(_) => Failure::Integrity,
        }
    }
}
