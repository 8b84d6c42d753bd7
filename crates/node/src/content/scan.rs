//! Scanning a path: hashing a source's content once.

use super::{Failure, GroupInfo, Kind};
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How to scan.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Bytes per block; `None` chooses by the content's size ([`super::block_size_for`]).
    pub block_size: Option<u32>,
    /// Where results are kept so that an unchanged content is not hashed again; `None` keeps
    /// nothing.
    pub state_dir: Option<PathBuf>,
}

/// A scanned content.
#[derive(Debug)]
pub struct Scan {
    root: [u8; 32],
    kind: Kind,
    block_size: u32,
    blocks: u32,
}

/// Told how many bytes of how many have been hashed; [`ControlFlow::Break`] stops the scan. Called
/// at least every 64 MiB, from more than one thread.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Why a path cannot be shared.
#[derive(Debug, Error)]
pub enum ScanError {
    /// It could not be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A symbolic link that points outside the shared directory.
    #[error("{} is a symbolic link that points outside the shared directory", path.display())]
    LinkOutside {
        /// The link.
        path: PathBuf,
    },
    /// Neither a file nor a directory nor a symbolic link.
    #[error("{} is a {what}: only files, directories and symbolic links can be shared", path.display())]
    Special {
        /// Which.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It changed while it was being read.
    #[error("{} changed while it was being read: share it when it is at rest", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// The path has no name of its own (`/`).
    #[error("{} has no name that receivers could store it under: share a directory below it", path.display())]
    Nameless {
        /// The path.
        path: PathBuf,
    },
    /// The block size is not allowed.
    #[error("block size {0}: a power of two from 16KiB to 8MiB is needed")]
    BlockSize(u32),
    /// More blocks or entries than a content may have.
    #[error("{} has {what}: {advice}", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// What is too much.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// Hashes could not be kept on the local disk.
    #[error("the hashes of {} cannot be kept: {error}", path.display())]
    Keep {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The progress callback asked to stop.
    #[error("interrupted")]
    Cancelled,
}

impl ScanError {
    /// What kind of failure it is.
    pub fn failure(&self) -> Failure {
        match self {
            ScanError::Read { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Failure::Usage
            }
            ScanError::Read { .. } | ScanError::Keep { .. } | ScanError::Changed { .. } => {
                Failure::Storage
            }
            ScanError::Cancelled => Failure::Cancelled,
            _ => Failure::Usage,
        }
    }
}

impl Scan {
    /// Reads and hashes what is at `path` (blocking: minutes for large contents).
    pub fn run(
        _path: &Path,
        _options: &ScanOptions,
        _progress: Progress<'_>,
    ) -> Result<Scan, ScanError> {
        Err(ScanError::Cancelled)
    }

    /// The group parameters of this content.
    pub fn info(&self, system: System, source: PeerId) -> GroupInfo {
        GroupInfo {
            version: super::info::VERSION,
            root: self.root,
            kind: self.kind.clone(),
            block_size: self.block_size,
            blocks: self.blocks,
            system,
            source,
        }
    }
}
