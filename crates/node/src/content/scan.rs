//! Scanning a path: a source's content is hashed once, by two threads, block by block.
//!
//! Memory holds 32 bytes per block; unit values go to the [`Outboard`] on disk. What was found is
//! kept beside it (`content/cache.rs`), so that an unchanged content is not hashed again.

use super::cache::{self, Cached, Kept};
use super::files::{Files, First, is_change, mtime_of};
use super::hashing::{HashError, Hashed, hash_blocks};
use super::info::MANIFEST_LEN_MAX;
use super::layout::{Body, Layout, Place};
use super::manifest::Manifest;
use super::outboard::Outboard;
use super::tree::Tree;
use super::walk::walk;
use super::{BLOCKS_MAX, Failure, GroupInfo, Kind, block_size_for, info, is_block_size};
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
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
    kind: Kind,
    block_size: u32,
    pub(crate) path: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) trees: Vec<Tree>,
    pub(crate) files: Files,
    pub(crate) outboard: Outboard,
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
    /// A symbolic link that points outside the shared directory, or might: absolute, or with `..`
    /// behind a name.
    #[error("{} is a symbolic link that points outside the shared directory: remove it or make it relative", path.display())]
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
    #[error("{} has too many {what}: choose a larger --block-size or share it in parts", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Of what.
        what: &'static str,
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
        path: &Path,
        options: &ScanOptions,
        progress: Progress<'_>,
    ) -> Result<Scan, ScanError> {
        if let Some(size) = options.block_size
            && !is_block_size(size)
        {
            return Err(ScanError::BlockSize(size));
        }
        let read = |error| ScanError::Read { path: path.to_owned(), error };
        let canonical = fs::canonicalize(path).map_err(read)?;
        let name = path.file_name().or(canonical.file_name());
        let name = name.ok_or_else(|| ScanError::Nameless { path: path.to_owned() })?;
        let metadata = fs::metadata(&canonical).map_err(read)?;
        let name = name.as_bytes().to_vec();
        let job = Job { path, canonical, name, options, progress };
        match metadata.file_type() {
            kind if kind.is_file() => job.scan_file(&metadata),
            kind if kind.is_dir() => job.scan_directory(&metadata),
            kind => Err(ScanError::Special {
                path: path.to_owned(),
                what: super::walk::special_name(kind),
            }),
        }
    }

    /// The content's identity.
    pub fn root(&self) -> &[u8; 32] {
        self.trees[0].root()
    }

    /// The group parameters of this content.
    pub fn info(&self, system: System, source: PeerId) -> GroupInfo {
        GroupInfo {
            version: info::VERSION,
            root: *self.root(),
            kind: self.kind.clone(),
            block_size: self.block_size,
            blocks: self.layout.blocks(),
            system,
            source,
        }
    }
}

/// One scan under way.
struct Job<'a> {
    path: &'a Path,
    canonical: PathBuf,
    name: Vec<u8>,
    options: &'a ScanOptions,
    progress: Progress<'a>,
}

impl Job<'_> {
    fn scan_file(self, metadata: &Metadata) -> Result<Scan, ScanError> {
        let file = File::open(&self.canonical).map_err(|error| self.unreadable(error))?;
        let (len, mtime) = (metadata.len(), mtime_of(metadata));
        let mode = (metadata.mode() & 0o777) as u16;
        let block_size = self.options.block_size.unwrap_or_else(|| block_size_for(len));
        self.check_blocks(len, block_size)?;
        let layout = Layout::first(len, block_size);
        let files = Files::settled(First::File { file, len, mtime: OnceLock::from(mtime) });
        let kind = Kind::File { name: self.name.clone(), len, mode, mtime };
        let mut key = cache::Key::new(&self.canonical, block_size);
        key.add(b"", metadata);
        let mut kept = self.open_cache(key, block_size)?;
        let values = match kept.load() {
            Some(Cached { values, .. }) if values.len() == layout.blocks() as usize => values,
            _ => {
                let blocks = 0..layout.blocks();
                let hashed = self.hash(&files, &layout, blocks, &kept.outboard, None, 0)?;
                kept.save(&hashed.values, &[]);
                hashed.values
            }
        };
        let trees = build_trees(&layout, block_size, &values);
        let (path, outboard) = (self.canonical, kept.outboard);
        Ok(Scan { kind, block_size, path, layout, trees, files, outboard })
    }

    fn scan_directory(self, metadata: &Metadata) -> Result<Scan, ScanError> {
        let found = walk(&self.canonical)?;
        let entries: Vec<_> = found.iter().map(|found| found.entry.clone()).collect();
        let mut manifest = Manifest { block_size: 0, entries, packs: Vec::new() };
        let (total_len, files) = manifest.totals().ok_or_else(|| self.too_large("files"))?;
        let block_size = self.options.block_size.unwrap_or_else(|| block_size_for(total_len));
        manifest.block_size = block_size;
        self.check_blocks(total_len, block_size)?;
        let mut key = cache::Key::new(&self.canonical, block_size);
        found.iter().for_each(|found| key.add(&found.entry.path, &found.metadata));
        drop(found);

        // Lengths are known before hashes, so the numbering is, too: hashes have a fixed size.
        let packs = Layout::directory(&manifest, 0).ok_or_else(|| self.too_large("blocks"))?;
        manifest.packs = vec![[0; 32]; packs.packs()];
        let manifest_len = manifest.encode().len() as u64;
        let layout = Layout::directory(&manifest, manifest_len);
        let layout = layout
            .filter(|all| all.blocks() <= BLOCKS_MAX && manifest_len <= MANIFEST_LEN_MAX)
            .ok_or_else(|| self.too_large("files"))?;

        let mut kept = self.open_cache(key, block_size)?;
        let cached = kept.load().and_then(|cached| {
            let manifest = Manifest::decode(&cached.manifest).ok()?;
            let fits = Layout::directory(&manifest, cached.manifest.len() as u64)? == layout;
            let (values, bytes) = (cached.values, cached.manifest);
            fits.then_some(HashedDirectory { values, bytes, manifest })
        });
        let root = File::open(&self.canonical).map_err(|error| self.unreadable(error))?;
        let HashedDirectory { values, bytes, manifest } = match cached {
            Some(all) => all,
            None => {
                let all = self.hash_directory(manifest, &layout, &root, &kept.outboard)?;
                kept.save(&all.values, &all.bytes);
                all
            }
        };
        let (mode, mtime) = ((metadata.mode() & 0o777) as u16, mtime_of(metadata));
        let name = self.name.clone();
        let kind = Kind::Directory { name, manifest_len, total_len, files, mode, mtime };
        let trees = build_trees(&layout, block_size, &values);
        let files = Files::settled(First::Memory(bytes));
        files.add_tree(OwnedFd::from(root), Arc::new(manifest));
        let (path, outboard) = (self.canonical, kept.outboard);
        Ok(Scan { kind, block_size, path, layout, trees, files, outboard })
    }

    /// Hashes the files, puts their hashes into the manifest, then hashes that.
    fn hash_directory(
        &self,
        mut manifest: Manifest,
        layout: &Layout,
        root: &File,
        outboard: &Outboard,
    ) -> Result<HashedDirectory, ScanError> {
        let blank = Arc::new(manifest.clone());
        let files = Files::settled(First::Memory(Vec::new()));
        files.add_tree(root.try_clone().map_err(|error| self.unreadable(error))?.into(), blank);
        let spans = layout.spans();
        let first = spans.get(1).map_or(layout.blocks(), |span| span.first_block);
        let blocks = first..layout.blocks();
        let hashed = self.hash(&files, layout, blocks, outboard, Some(&manifest), 0)?;
        let trees = build_trees(
            layout,
            manifest.block_size,
            &[vec![[0; 32]; first as usize], hashed.values.clone()].concat(),
        );
        let mut packs = Vec::with_capacity(manifest.packs.len());
        for (span, tree) in spans.iter().zip(&trees) {
            match span.body {
                Body::Whole(Place::Entry(entry)) => manifest.set_hash(entry, *tree.root()),
                Body::Whole(Place::First) => {}
                Body::Pack(_) => packs.push(*tree.root()),
            }
        }
        for (entry, hash) in hashed.smalls {
            manifest.set_hash(entry, hash);
        }
        manifest.packs = packs;
        let bytes = manifest.encode();
        let files = Files::settled(First::Memory(bytes.clone()));
        let before = layout.spans()[1..].iter().map(|span| span.len).sum();
        let mut values = self.hash(&files, layout, 0..first, outboard, None, before)?.values;
        values.extend(hashed.values);
        Ok(HashedDirectory { values, bytes, manifest })
    }

    /// Hashes some of the blocks; `before` says how many bytes were hashed in an earlier pass, and
    /// `manifest` names the files.
    fn hash(
        &self,
        files: &Files,
        layout: &Layout,
        blocks: Range<u32>,
        outboard: &Outboard,
        manifest: Option<&Manifest>,
        before: u64,
    ) -> Result<Hashed, ScanError> {
        let total = layout.spans().iter().map(|span| span.len).sum();
        let progress = |done: u64| (self.progress)(before + done, total);
        let path_of = |place| match (place, manifest) {
            (Place::Entry(entry), Some(manifest)) => {
                let below = &manifest.entries[entry as usize].path;
                self.canonical.join(OsStr::from_bytes(below))
            }
            _ => self.path.to_owned(),
        };
        hash_blocks(files, layout, blocks, outboard, &progress).map_err(|error| match error {
            HashError::Read { place, error } if is_change(&error) => {
                ScanError::Changed { path: path_of(place) }
            }
            HashError::Read { place, error } => ScanError::Read { path: path_of(place), error },
            HashError::Keep(error) => self.unkept(error),
            HashError::Cancelled => ScanError::Cancelled,
        })
    }

    fn open_cache(&self, key: cache::Key, block_size: u32) -> Result<Kept, ScanError> {
        Kept::open(self.options.state_dir.as_deref(), key, block_size)
            .map_err(|error| self.unkept(error))
    }

    fn check_blocks(&self, len: u64, block_size: u32) -> Result<(), ScanError> {
        if len.div_ceil(u64::from(block_size)) > u64::from(BLOCKS_MAX) {
            return Err(self.too_large("blocks"));
        }
        Ok(())
    }

    fn too_large(&self, what: &'static str) -> ScanError {
        ScanError::TooLarge { path: self.path.to_owned(), what }
    }

    fn unreadable(&self, error: io::Error) -> ScanError {
        ScanError::Read { path: self.path.to_owned(), error }
    }

    fn unkept(&self, error: io::Error) -> ScanError {
        ScanError::Keep { path: self.path.to_owned(), error }
    }
}

/// What hashing a directory gives.
struct HashedDirectory {
    /// Of all blocks.
    values: Vec<[u8; 32]>,
    /// The manifest's.
    bytes: Vec<u8>,
    manifest: Manifest,
}

/// The trees of a layout from the values of all blocks.
fn build_trees(layout: &Layout, block_size: u32, values: &[[u8; 32]]) -> Vec<Tree> {
    let mut rest = values;
    let spans = layout.spans().iter();
    spans
        .map(|span| {
            let blocks = span.len.div_ceil(u64::from(block_size)) as usize;
            let (own, others) = rest.split_at(blocks);
            rest = others;
            match own {
                [] => Tree::new(*blake3::hash(b"").as_bytes(), 0, block_size),
                [root] => Tree::new(*root, span.len, block_size),
                _ => Tree::from_values(own, span.len, block_size),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
