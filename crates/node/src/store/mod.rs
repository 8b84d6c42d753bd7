//! Where one group's blocks are: read at the source, written and read at a receiver.
//!
//! A receiver works in `DIR/.NAME.anabranch-ROOT/` (`partial.rs`): the bytes in their final form, a
//! record (`record.rs`) that claims only what is on disk, unit values and hash pages. When all is
//! there the content is renamed to `DIR/NAME`: its name appears then and not before.
//!
//! All methods may block on the disk and may be called from several threads at once.

mod error;
mod finish;
mod page_log;
mod partial;
mod record;
mod state;
mod writer;

pub use error::{FinishError, OpenError, PageError, Refused, StorageError, WriteError};
pub use writer::BlockWriter;

use crate::content::files::{Files, First};
use crate::content::layout::{Layout, Place};
use crate::content::outboard::Outboard;
use crate::content::scan::Progress;
use crate::content::tree::{BlockCheck, unit_value};
use crate::content::{GroupInfo, PageId, Scan, unit_len};
use anabranch_proto::id::BlockIndex;
use anabranch_proto::overlay::Holdings;
use anabranch_proto::summary::Bitmap;
use partial::{Journal, Partial};
use state::State;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One group's content on the local disk.
#[derive(Debug)]
pub struct Store {
    info: GroupInfo,
    files: Files,
    outboard: Outboard,
    state: Mutex<State>,
    /// A receiver's partial content; `None` at a source and when all was there. Taken before
    /// `state` where both are.
    disk: Mutex<Option<Partial>>,
    /// A receiver's record and page log. Taken last and for no longer than a write, never for a
    /// sync, so that blocks can come meanwhile.
    journal: Mutex<Option<Journal>>,
    /// What errors name.
    path: PathBuf,
    /// A receiver's working directory.
    work: PathBuf,
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

impl Store {
    /// The store of a source: complete. `info` must be [`Scan::info`] of this scan.
    pub fn source(scan: Scan, info: GroupInfo) -> Arc<Store> {
        Arc::new(Store::complete(scan, info))
    }

    fn complete(scan: Scan, info: GroupInfo) -> Store {
        let held = Bitmap::full(info.blocks);
        let state = State {
            bytes_held: info.total_len() + info.manifest_len(),
            layout: Arc::new(scan.layout),
            trees: scan.trees,
            held,
            laid_out: true,
            blocks_unflushed: Vec::new(),
            finished: Some(scan.path.clone()),
        };
        Store {
            info,
            files: scan.files,
            outboard: scan.outboard,
            state: Mutex::new(state),
            disk: Mutex::new(None),
            journal: Mutex::new(None),
            work: PathBuf::new(),
            path: scan.path,
        }
    }

    /// The store of a receiver that puts the content into directory `dir` (made when it is not
    /// there): what an earlier run left is taken up, and what is there already in full is complete
    /// at once (it is hashed to find out: `progress` is told). `overwrite` allows replacing
    /// something different of that name.
    pub fn receive(
        info: GroupInfo,
        dir: &Path,
        overwrite: bool,
        progress: Progress<'_>,
    ) -> Result<Arc<Store>, OpenError> {
        partial::open(info, dir, overwrite, record::boot_id(), progress).map(Arc::new)
    }

    /// The group's parameters.
    pub fn info(&self) -> &GroupInfo {
        &self.info
    }

    /// What is held and verifiable now.
    pub fn holdings(&self) -> Holdings {
        let state = self.state();
        let known = state.layout.blocks();
        let lengths = (0..self.info.blocks).map(|block| match block < known {
            true => state.layout.block_len(block),
            false => self.info.block_size,
        });
        let mut holdings = Holdings::table(lengths.collect());
        for (from, to) in state.verifiable(0) {
            holdings.learn(from, to);
        }
        for block in state.held.iter() {
            holdings.hold(block);
        }
        holdings
    }

    /// Whether every block is held.
    pub fn is_complete(&self) -> bool {
        self.state().held.is_full()
    }

    /// The bytes of the blocks held; all of them are [`GroupInfo::total_len`] and
    /// [`GroupInfo::manifest_len`] together.
    pub fn bytes_held(&self) -> u64 {
        self.state().bytes_held
    }

    /// Where the content is under its final name; `None` until [`Store::finish`].
    pub fn final_path(&self) -> Option<PathBuf> {
        self.state().finished.clone()
    }

    /// Up to `max` hash pages that are wanted and could be verified now, most wanted first. More
    /// may follow once these were accepted.
    pub fn missing_pages(&self, max: usize) -> Vec<PageId> {
        let state = self.state();
        let trees = state.trees.iter().enumerate();
        let missing = trees.flat_map(|(at, tree)| {
            tree.missing_pages().map(move |page| PageId { tree: at as u32, page })
        });
        missing.take(max).collect()
    }

    /// A hash page to give to others; `None` when it is not known here or does not exist.
    pub fn page(&self, id: PageId) -> Option<Vec<u8>> {
        self.state().trees.get(id.tree as usize)?.page(id.page)
    }

    /// Checks and keeps a hash page from a peer.
    pub fn accept_page(&self, id: PageId, bytes: &[u8]) -> Result<Learned, PageError> {
        let (learned, is_new) = {
            let mut state = self.state();
            let was_known =
                state.trees.get(id.tree as usize).is_some_and(|tree| tree.page(id.page).is_some());
            (state.accept_page(id, bytes)?, !was_known)
        };
        if let (true, Some(journal)) = (is_new, &mut *self.journal()) {
            let kept = journal.pages.append(id, bytes);
            kept.map_err(|error| StorageError::of(&self.path, error))?;
        }
        Ok(learned)
    }

    /// The proof of a held block, as its receiver hands it to [`Store::begin`]: at most 4 KiB. One
    /// that the disk did not keep right is made anew from the block's bytes.
    pub fn proof(&self, block: BlockIndex) -> io::Result<Vec<u8>> {
        let (layout, expected) = {
            let state = self.state();
            if !state.held.contains(block) {
                return Err(io::ErrorKind::NotFound.into());
            }
            (Arc::clone(&state.layout), state.expected(block))
        };
        let len = layout.block_len(block);
        if len <= unit_len(self.info.block_size) {
            return Ok(Vec::new());
        }
        let Some((within, expected)) = expected else {
            return self.outboard.read(block, len);
        };
        let is_right = |proof: &[u8]| {
            BlockCheck::new(expected, within, self.info.block_size, len, proof).is_some()
        };
        match self.outboard.read(block, len) {
            Ok(proof) if is_right(&proof) => Ok(proof),
            _ => {
                let proof = self.prove(&layout, block, within, len)?;
                if !is_right(&proof) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the file is not what was hashed any more",
                    ));
                }
                self.outboard.write(block, &proof)?;
                Ok(proof)
            }
        }
    }

    /// Reads bytes of a held block. An error means that the block can no longer be served (the
    /// source's file changed, the disk failed).
    pub fn read_at(&self, block: BlockIndex, offset: u32, buf: &mut [u8]) -> io::Result<()> {
        let layout = {
            let state = self.state();
            if !state.held.contains(block) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Arc::clone(&state.layout)
        };
        self.read_pieces(&layout, block, offset, buf)
    }

    /// Begins to receive a block of `len` bytes whose unit values are `proof`.
    pub fn begin(
        self: &Arc<Store>,
        block: BlockIndex,
        len: u32,
        proof: &[u8],
    ) -> Result<BlockWriter, Refused> {
        BlockWriter::new(self, block, len, proof)
    }

    /// Puts on disk what was received, data first, then the record of it. A kill does not lose
    /// what came since, a power loss does: call every two seconds or so and before ending. Cheap
    /// when nothing came since.
    pub fn flush(&self) -> Result<(), StorageError> {
        match &mut *self.disk() {
            Some(partial) => self.flush_partial(partial),
            None => Ok(()),
        }
    }

    /// Gives the complete content its modes, times and final name; returns its path. Calling it
    /// again, or for a source, only returns the path. The store still serves afterwards.
    pub fn finish(&self) -> Result<PathBuf, FinishError> {
        finish::finish(self)
    }

    fn flush_partial(&self, partial: &mut Partial) -> Result<(), StorageError> {
        let (mut blocks, layout) = {
            let mut state = self.state();
            (std::mem::take(&mut state.blocks_unflushed), Arc::clone(&state.layout))
        };
        let flushed = partial.flush(self, &layout, &mut blocks);
        if flushed.is_err() {
            self.state().blocks_unflushed.append(&mut blocks);
        }
        flushed
    }

    /// Notes that a block was written, for the case of a kill.
    fn claim_written(&self, block: BlockIndex) {
        if let Some(journal) = &mut *self.journal()
            && let Err(error) = journal.record.claim_written(block)
        {
            // The block is there: the next flush claims it, or fails and says why.
            tracing::debug!(%error, block, "a block is not recorded yet");
        }
    }

    /// Puts the bytes of these blocks on disk, with their unit values.
    fn sync_blocks(&self, layout: &Layout, blocks: &[BlockIndex]) -> io::Result<()> {
        let (first, entries) = places(layout, blocks);
        if let (true, First::File { file, .. }) = (first, self.files.first()) {
            file.sync_data()?;
        }
        if let (false, Some(tree)) = (entries.is_empty(), self.files.tree()) {
            tree.sync(&entries)?;
        }
        self.outboard.sync()
    }

    /// Unit values of a block, from its bytes.
    fn prove(
        &self,
        layout: &Layout,
        block: BlockIndex,
        within: u32,
        len: u32,
    ) -> io::Result<Vec<u8>> {
        let unit = unit_len(self.info.block_size);
        let start = u64::from(within) * u64::from(self.info.block_size);
        let mut proof = Vec::new();
        let mut buf = vec![0; unit as usize];
        for offset in (0..len).step_by(unit as usize) {
            let bytes = &mut buf[..unit.min(len - offset) as usize];
            self.read_pieces(layout, block, offset, bytes)?;
            proof.extend_from_slice(&unit_value(bytes, start + u64::from(offset)));
        }
        Ok(proof)
    }

    fn read_pieces(
        &self,
        layout: &Layout,
        block: BlockIndex,
        offset: u32,
        buf: &mut [u8],
    ) -> io::Result<()> {
        let pieces = layout.pieces(block, offset, buf.len() as u32);
        let mut rest = buf;
        for piece in pieces.ok_or(io::ErrorKind::InvalidInput)? {
            let (own, others) = rest.split_at_mut(piece.len as usize);
            self.files.read(piece, own)?;
            rest = others;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> MutexGuard<'_, Option<Partial>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where these blocks are: whether in the first tree, and in which files of a directory.
fn places(layout: &Layout, blocks: &[BlockIndex]) -> (bool, BTreeSet<u32>) {
    let mut entries = BTreeSet::new();
    let mut first = false;
    for &block in blocks {
        let pieces = layout.pieces(block, 0, layout.block_len(block)).unwrap_or_default();
        for piece in pieces {
            match piece.place {
                Place::First => first = true,
                Place::Entry(entry) => _ = entries.insert(entry),
            }
        }
    }
    (first, entries)
}

#[cfg(test)]
mod tests;
