//! Receiving a block: each verify unit is checked before it is stored.

use super::{Learned, Refused, StorageError, Store, WriteError, Written};
use crate::content::files::First;
use crate::content::hashing::SmallHasher;
use crate::content::layout::{Layout, Small};
use crate::content::manifest::{EntryKind, Manifest};
use crate::content::tree::BlockCheck;
use crate::content::{Kind, unit_len};
use anabranch_proto::id::BlockIndex;
use std::sync::Arc;

/// Takes the bytes of one block as they come, checks each verify unit and writes what is right.
/// Dropping it before [`BlockWriter::finish`] gives the block up.
#[derive(Debug)]
pub struct BlockWriter {
    store: Arc<Store>,
    layout: Arc<Layout>,
    block: BlockIndex,
    len: u32,
    /// How many bytes came.
    taken: u32,
    unit_len: u32,
    /// The beginning of the unit under way.
    unit: Vec<u8>,
    /// `None` when the block is held already: its bytes are only counted.
    check: Option<BlockCheck>,
    proof: Vec<u8>,
    /// Of a pack: checks its files.
    small_hasher: Option<Box<SmallHasher>>,
}

impl BlockWriter {
    pub(super) fn new(
        store: &Arc<Store>,
        block: BlockIndex,
        len: u32,
        proof: &[u8],
    ) -> Result<BlockWriter, Refused> {
        let (layout, expected, is_held) = {
            let state = store.state();
            let layout = Arc::clone(&state.layout);
            (layout, state.expected(block), state.held.contains(block))
        };
        let block_size = store.info.block_size;
        let check = if is_held {
            None
        } else {
            let (within, expected) = expected.ok_or(Refused::NotVerifiable)?;
            if len != layout.block_len(block) {
                return Err(Refused::Length);
            }
            let check = BlockCheck::new(expected, within, block_size, len, proof);
            Some(check.ok_or(Refused::Corrupt)?)
        };
        let small_hasher =
            check.is_some().then(|| smalls(&layout, block)).filter(|s| !s.is_empty());
        let small_hasher = small_hasher.map(|_| Box::default());
        Ok(BlockWriter {
            store: Arc::clone(store),
            layout,
            block,
            len,
            taken: 0,
            unit_len: unit_len(block_size),
            unit: Vec::new(),
            check,
            proof: proof.to_vec(),
            small_hasher,
        })
    }

    /// Takes the next bytes of the block, in any portions: whole units that come in one portion
    /// are not copied. After an error the writer is of no further use.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        if bytes.len() > (self.len - self.taken) as usize {
            return Err(WriteError::Corrupt);
        }
        if self.check.is_none() {
            self.taken += bytes.len() as u32;
            return Ok(());
        }
        while !bytes.is_empty() {
            let missing = self.unit_missing();
            let (own, rest) = if self.unit.is_empty() && bytes.len() >= missing {
                bytes.split_at(self.whole_units(bytes.len()))
            } else {
                bytes.split_at(bytes.len().min(missing))
            };
            if own.len() < missing {
                self.unit.reserve_exact(missing);
                self.unit.extend_from_slice(own);
            } else if self.unit.is_empty() {
                self.store_units(self.taken, own)?;
            } else {
                let mut unit = std::mem::take(&mut self.unit);
                unit.extend_from_slice(own);
                self.store_units(self.taken + own.len() as u32 - unit.len() as u32, &unit)?;
                unit.clear();
                self.unit = unit;
            }
            self.taken += own.len() as u32;
            bytes = rest;
        }
        Ok(())
    }

    /// The block is at its end.
    pub fn finish(self) -> Result<Written, WriteError> {
        if self.taken != self.len {
            return Err(WriteError::Corrupt);
        }
        if self.check.is_none() {
            return Ok(Written {
                duplicate: true,
                learned: Learned::default(),
                complete: self.store.is_complete(),
            });
        }
        self.check_smalls()?;
        let kept = self.store.outboard.write(self.block, &self.proof);
        kept.map_err(|error| StorageError::of(&self.store.path, error))?;
        let (is_new, manifest_done) = {
            let mut state = self.store.state();
            let is_new = state.hold(self.block, self.len);
            (is_new, is_new && state.can_lay_out())
        };
        if is_new {
            self.store.claim_written(self.block);
        }
        let learned = if manifest_done { lay_out(&self.store)? } else { Learned::default() };
        Ok(Written { duplicate: !is_new, learned, complete: self.store.is_complete() })
    }

    /// Bytes that the unit under way still lacks.
    fn unit_missing(&self) -> usize {
        let unit_start = self.taken - self.unit.len() as u32;
        let unit_len = self.unit_len.min(self.len - unit_start);
        unit_len as usize - self.unit.len()
    }

    /// How many of the next `available` bytes are whole units.
    fn whole_units(&self, available: usize) -> usize {
        let left = (self.len - self.taken) as usize;
        if available >= left { left } else { available - available % self.unit_len as usize }
    }

    /// Checks and writes whole units that begin at byte `offset` of the block.
    fn store_units(&mut self, offset: u32, bytes: &[u8]) -> Result<(), WriteError> {
        let Some(check) = &self.check else { return Ok(()) };
        let first = offset / self.unit_len;
        for (at, unit) in bytes.chunks(self.unit_len as usize).enumerate() {
            if !check.is_right(first + at as u32, unit) {
                return Err(WriteError::Corrupt);
            }
        }
        let pieces = self.layout.pieces(self.block, offset, bytes.len() as u32);
        let mut rest = bytes;
        for piece in pieces.expect("the block is so long") {
            let (own, others) = rest.split_at(piece.len as usize);
            let written = self.store.files.write(piece, own);
            written.map_err(|error| StorageError::of(&self.store.path, error))?;
            rest = others;
        }
        if let Some(hasher) = &mut self.small_hasher {
            hasher.update(smalls(&self.layout, self.block), bytes);
        }
        Ok(())
    }

    /// Checks the files of a pack against their own hashes.
    fn check_smalls(&self) -> Result<(), WriteError> {
        let (Some(hasher), Some(tree)) = (&self.small_hasher, self.store.files.tree()) else {
            return Ok(());
        };
        for (entry, hash) in &hasher.hashes {
            let entry = &tree.manifest().entries[*entry as usize];
            if !matches!(&entry.kind, EntryKind::File { hash: wanted, .. } if wanted == hash) {
                let path = String::from_utf8_lossy(&entry.path).into_owned();
                return Err(WriteError::Contradiction(format!("{path:?} has two hashes")));
            }
        }
        Ok(())
    }
}

/// The files of a block that is a pack; none of another block.
fn smalls(layout: &Layout, block: BlockIndex) -> &[Small] {
    layout.locate(block).map_or(&[], |(tree, _)| layout.smalls(&layout.spans()[tree].body))
}

/// Reads the manifest, which is complete, and takes the layout it gives.
pub(super) fn lay_out(store: &Store) -> Result<Learned, WriteError> {
    let len = store.info.first_tree_len();
    let mut bytes = vec![0; len as usize];
    if let First::File { file, .. } = store.files.first() {
        use std::os::unix::fs::FileExt;
        let read = file.read_exact_at(&mut bytes, 0);
        read.map_err(|error| StorageError::of(&store.path, error))?;
    }
    let contradiction =
        |why: &str| WriteError::Contradiction(format!("its manifest is bad: {why}"));
    let manifest = Manifest::decode(&bytes).map_err(|error| contradiction(&error.to_string()))?;
    let Kind::Directory { total_len, files, .. } = store.info.kind else {
        return Err(contradiction("a file has none"));
    };
    let layout = Layout::directory(&manifest, len).filter(|all| all.blocks() == store.info.blocks);
    let layout = layout.ok_or_else(|| contradiction("it has another number of blocks"))?;
    if manifest.block_size != store.info.block_size {
        return Err(contradiction("it has another block size"));
    }
    if manifest.totals() != Some((total_len, files)) {
        return Err(contradiction("its lengths do not add up"));
    }
    let root = super::partial::open_tree(&store.work)
        .map_err(|error| StorageError::of(&store.path, error))?;
    let manifest = Arc::new(manifest);
    store.files.add_tree(root, Arc::clone(&manifest));
    let mut state = store.state();
    if state.laid_out {
        return Ok(Learned::default());
    }
    Ok(state.lay_out(layout, &manifest))
}
