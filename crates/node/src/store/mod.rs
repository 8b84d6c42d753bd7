//! Where one group's blocks are: read at the source, written and read at a receiver.
//!
//! All methods may block on the disk and may be called from several threads at once.

mod error;

pub use error::{FinishError, OpenError, PageError, Refused, StorageError, WriteError};

use crate::content::scan::Progress;
use crate::content::{GroupInfo, PageId, Scan};
use anabranch_proto::id::BlockIndex;
use anabranch_proto::overlay::Holdings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One group's content on the local disk.
#[derive(Debug)]
pub struct Store {
    info: GroupInfo,
}

/// What became known: apply it to the group's [`Holdings`], then hand in
/// [`anabranch_proto::overlay::Input::Learned`] unless it is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Learned {
    /// Lengths of blocks, in bytes; to be set before the blocks are marked verifiable.
    pub lengths: Vec<(BlockIndex, u32)>,
    /// Ranges `from..to` of blocks that can be verified from now on.
    pub verifiable: Vec<(BlockIndex, BlockIndex)>,
}

impl Learned {
    /// Whether nothing became known.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.verifiable.is_empty()
    }

    /// Tells `holdings`.
    pub fn apply(&self, holdings: &mut Holdings) {
        for &(block, len) in &self.lengths {
            holdings.set_block_len(block, len);
        }
        for &(from, to) in &self.verifiable {
            holdings.learn(from, to);
        }
    }
}

/// How a received block ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Written {
    /// Whether the block was held already, so that its bytes were of no use.
    pub duplicate: bool,
    /// What the block taught: a directory's layout, when it completed the manifest.
    pub learned: Learned,
    /// Whether every block is held now: [`Store::finish`] is next.
    pub complete: bool,
}

/// Takes the bytes of one block as they come, checks each verify unit and writes what is right.
/// Dropping it before [`BlockWriter::finish`] gives the block up.
#[derive(Debug)]
pub struct BlockWriter {
    _store: Arc<Store>,
}

impl Store {
    /// The store of a source: complete.
    pub fn source(_scan: Scan, info: GroupInfo) -> Arc<Store> {
        Arc::new(Store { info })
    }

    /// The store of a receiver that puts the content into directory `dir`: what an earlier run left
    /// is taken up, and what is there already in full is complete at once (it is hashed to find
    /// out: `progress` is told). `overwrite` allows replacing something different of that name.
    pub fn receive(
        _info: GroupInfo,
        _dir: &Path,
        _overwrite: bool,
        _progress: Progress<'_>,
    ) -> Result<Arc<Store>, OpenError> {
        Err(OpenError::Cancelled)
    }

    /// The group's parameters.
    pub fn info(&self) -> &GroupInfo {
        &self.info
    }

    /// What is held and verifiable now.
    pub fn holdings(&self) -> Holdings {
        Holdings::uniform(1, 0)
    }

    /// Whether every block is held.
    pub fn is_complete(&self) -> bool {
        false
    }

    /// Up to `max` hash pages that are wanted and could be verified now, most wanted first. More
    /// may follow once these were accepted.
    pub fn missing_pages(&self, _max: usize) -> Vec<PageId> {
        Vec::new()
    }

    /// A hash page to give to others; `None` when it is not known here or does not exist.
    pub fn page(&self, _id: PageId) -> Option<Vec<u8>> {
        None
    }

    /// Checks and keeps a hash page from a peer.
    pub fn accept_page(&self, _id: PageId, _bytes: &[u8]) -> Result<Learned, PageError> {
        Err(PageError::Unknown)
    }

    /// The proof of a held block, as its receiver hands it to [`Store::begin`]: at most 4 KiB.
    pub fn proof(&self, _block: BlockIndex) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Reads bytes of a held block. An error means that the block can no longer be served (the
    /// source's file changed, the disk failed).
    pub fn read_at(&self, _block: BlockIndex, _offset: u32, _buf: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    /// Begins to receive a block of `len` bytes whose unit values are `proof`.
    pub fn begin(
        self: &Arc<Store>,
        _block: BlockIndex,
        _len: u32,
        _proof: &[u8],
    ) -> Result<BlockWriter, Refused> {
        Err(Refused::NotVerifiable)
    }

    /// Puts on disk what was received, data first, then the record of it. Call every two seconds
    /// or so and before ending. Cheap when nothing came since.
    pub fn flush(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Gives the complete content its modes, times and final name; returns its path. Calling it
    /// again, or for a source, only returns the path. The store still serves afterwards.
    pub fn finish(&self) -> Result<PathBuf, FinishError> {
        Ok(PathBuf::new())
    }
}

impl BlockWriter {
    /// Takes the next bytes of the block, in any portions: whole units that come in one portion
    /// are not copied.
    pub fn write(&mut self, _bytes: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }

    /// The block is at its end.
    pub fn finish(self) -> Result<Written, WriteError> {
        Err(WriteError::Corrupt)
    }
}
