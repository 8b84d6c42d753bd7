//! Hashing blocks in two threads with bounded memory.

use super::files::Files;
use super::layout::{Layout, Place, Small};
use super::outboard::Outboard;
use super::tree::{merge, merge_root, unit_value};
use super::unit_len;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

/// Two keep a disk and the hashing busy; more would take the machine from its user.
const THREADS: usize = 2;
/// Bytes read at once: whole units, few system calls, still in the cache when they are hashed.
const READ_LEN: u32 = 256 * 1024;

/// Told how many bytes were hashed; may stop the pass.
type Progress<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// What hashing found.
#[derive(Default)]
pub(crate) struct Hashed {
    /// Per block its value; of a tree of one block the root.
    pub(crate) values: Vec<[u8; 32]>,
    /// Of packed files (by number of entry) their own hashes.
    pub(crate) smalls: Vec<(u32, [u8; 32])>,
}

/// Why hashing stopped.
pub(crate) enum HashError {
    Read { place: Place, error: io::Error },
    Keep(io::Error),
    Cancelled,
}

/// Hashes blocks and keeps their unit values in `outboard`; `progress` is told the bytes done.
pub(crate) fn hash_blocks(
    files: &Files,
    layout: &Layout,
    blocks: Range<u32>,
    outboard: &Outboard,
    progress: Progress<'_>,
) -> Result<Hashed, HashError> {
    let pass = Pass {
        files,
        layout,
        outboard,
        progress,
        done: AtomicU64::new(0),
        next: AtomicU32::new(blocks.start),
        end: blocks.end,
        stopped: AtomicBool::new(false),
    };
    let parts = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| pass.work())).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut hashed = Hashed { values: vec![[0; 32]; blocks.len()], smalls: Vec::new() };
    for part in parts {
        let (values, smalls) = part?;
        for (block, value) in values {
            hashed.values[(block - blocks.start) as usize] = value;
        }
        hashed.smalls.extend(smalls);
    }
    Ok(hashed)
}

/// One pass over blocks, shared by its threads.
struct Pass<'a> {
    files: &'a Files,
    layout: &'a Layout,
    outboard: &'a Outboard,
    progress: Progress<'a>,
    done: AtomicU64,
    next: AtomicU32,
    end: u32,
    stopped: AtomicBool,
}

type Part = (Vec<(u32, [u8; 32])>, Vec<(u32, [u8; 32])>);

impl Pass<'_> {
    fn work(&self) -> Result<Part, HashError> {
        let mut part = Part::default();
        let mut buf = vec![0; READ_LEN as usize];
        while !self.stopped.load(Ordering::Relaxed) {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= self.end {
                break;
            }
            match self.hash_block(block, &mut buf, &mut part.1) {
                Ok(value) => part.0.push((block, value)),
                Err(error) => {
                    self.stopped.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(part)
    }

    fn hash_block(
        &self,
        block: u32,
        buf: &mut [u8],
        small_hashes: &mut Vec<(u32, [u8; 32])>,
    ) -> Result<[u8; 32], HashError> {
        let (tree, within) = self.layout.locate(block).expect("the pass is over existing blocks");
        let span = &self.layout.spans()[tree];
        let smalls = self.layout.smalls(&span.body);
        let mut small_hasher = SmallHasher::default();
        let len = self.layout.block_len(block);
        let mut hasher = BlockHasher::new(within, self.layout.block_size(), len, span.len);
        for offset in (0..len).step_by(READ_LEN as usize) {
            let bytes = &mut buf[..READ_LEN.min(len - offset) as usize];
            self.read(block, offset, bytes)?;
            hasher.update(bytes);
            small_hasher.update(smalls, bytes);
            let done = self.done.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            if (self.progress)(done + bytes.len() as u64) == ControlFlow::Break(()) {
                return Err(HashError::Cancelled);
            }
        }
        small_hashes.extend(small_hasher.hashes);
        let (value, proof) = hasher.finish();
        self.outboard.write(block, &proof).map_err(HashError::Keep)?;
        Ok(value)
    }

    fn read(&self, block: u32, offset: u32, bytes: &mut [u8]) -> Result<(), HashError> {
        let pieces = self.layout.pieces(block, offset, bytes.len() as u32);
        let mut rest = bytes;
        for piece in pieces.expect("the block is so long") {
            let (own, others) = rest.split_at_mut(piece.len as usize);
            let place = piece.place;
            self.files.read(piece, own).map_err(|error| HashError::Read { place, error })?;
            rest = others;
        }
        Ok(())
    }
}

/// Hashes one block from portions of whole units.
pub(crate) struct BlockHasher {
    start: u64,
    unit_len: u32,
    /// Whether the block is its whole tree, whose value is the root.
    is_tree: bool,
    is_unit: bool,
    values: Vec<[u8; 32]>,
}

impl BlockHasher {
    /// Of block number `block` of a tree of `tree_len` bytes.
    pub(crate) fn new(block: u32, block_size: u32, len: u32, tree_len: u64) -> BlockHasher {
        let unit_len = unit_len(block_size);
        BlockHasher {
            start: u64::from(block) * u64::from(block_size),
            unit_len,
            is_tree: u64::from(len) == tree_len,
            is_unit: len <= unit_len,
            values: Vec::with_capacity(len.div_ceil(unit_len) as usize),
        }
    }

    /// Takes whole units; only the block's last may be shorter.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for unit in bytes.chunks(self.unit_len as usize) {
            let start = self.start + self.values.len() as u64 * u64::from(self.unit_len);
            self.values.push(if self.is_tree && self.is_unit {
                *blake3::hash(unit).as_bytes()
            } else {
                unit_value(unit, start)
            });
        }
    }

    /// The block's value (of a whole tree the root) and its proof.
    pub(crate) fn finish(self) -> ([u8; 32], Vec<u8>) {
        match &self.values[..] {
            [value] => (*value, Vec::new()),
            values if self.is_tree => (merge_root(values), values.concat()),
            values => (merge(values), values.concat()),
        }
    }
}

/// Hashes the small files of a pack on the way.
#[derive(Debug, Default)]
pub(crate) struct SmallHasher {
    /// How many files are done.
    at: usize,
    within: u32,
    hasher: blake3::Hasher,
    /// Per entry the hash of its file.
    pub(crate) hashes: Vec<(u32, [u8; 32])>,
}

impl SmallHasher {
    /// Takes the next bytes of a pack of the files `smalls`.
    pub(crate) fn update(&mut self, smalls: &[Small], mut bytes: &[u8]) {
        while let Some(small) = smalls.get(self.at)
            && !bytes.is_empty()
        {
            let (own, next) = bytes.split_at(bytes.len().min((small.len - self.within) as usize));
            self.hasher.update(own);
            self.within += own.len() as u32;
            bytes = next;
            if self.within == small.len {
                self.hashes.push((small.entry, *self.hasher.finalize().as_bytes()));
                self.hasher.reset();
                (self.at, self.within) = (self.at + 1, 0);
            }
        }
    }
}
