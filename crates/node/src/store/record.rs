//! The record of what a partial content holds: an append-only file that survives a kill and a
//! power loss at any moment.
//!
//! ```text
//! "ABrecrd2"  length: u32  group parameters  checksum [16]
//! entry: kind: u8  length: u32  payload  checksum [8]
//! payload: 1 synced, 2 written: (from: u32, to: u32)*    3 opened: boot id: u128, 0 unknown
//! ```
//! Little endian; a checksum is the beginning of the BLAKE3 of all before it in the header or
//! entry, an entry's with the entry's number in front. What follows the last whole entry is cut.
//!
//! *Synced* claims blocks that are on disk, whatever happens to the machine. *Written* claims
//! blocks that the kernel has: they outlive the process and not the machine, so they count only
//! while it runs as it did when the record was *opened*. Opening it under another boot id disowns
//! what was only written before.

use crate::content::GroupInfo;
use anabranch_proto::summary::Bitmap;
use std::fs::File;
use std::io;
use std::num::NonZeroU128;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"ABrecrd2";
const KIND_SYNCED: u8 = 1;
const KIND_WRITTEN: u8 = 2;
const KIND_OPENED: u8 = 3;
const HEAD_LEN: usize = 5;
const CHECKSUM_LEN: usize = 8;
/// The most ranges one entry claims.
const RANGES_MAX: usize = 8192;

/// What the kernel calls this run of the machine; `None` when it does not say.
pub(crate) type BootId = Option<NonZeroU128>;

/// The boot id now.
pub(crate) fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    NonZeroU128::new(u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?)
}

/// A record open for appending.
#[derive(Debug)]
pub(crate) struct Record {
    file: Arc<File>,
    len: u64,
    entries: u64,
}

/// What a record says.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The content's parameters.
    pub(crate) info: GroupInfo,
    /// The blocks on disk.
    pub(crate) synced: Bitmap,
    /// The blocks that were written and may not be on disk; some may be in both.
    pub(crate) written: Bitmap,
    /// How many bytes are whole.
    pub(crate) len: u64,
    entries: u64,
}

/// The header of a new record.
pub(crate) fn header(info: &GroupInfo) -> Vec<u8> {
    let body = info.encode();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&body);
    let checksum = blake3::hash(&bytes);
    bytes.extend_from_slice(&checksum.as_bytes()[..16]);
    bytes
}

/// Whether this is a record that another version of the program made.
pub(crate) fn is_of_another_version(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic: &[u8; 8]| magic[..7] == MAGIC[..7] && magic != MAGIC)
}

/// Reads a record while the machine runs as `boot`; `None` when not even its header is whole.
pub(crate) fn decode(bytes: &[u8], boot: BootId) -> Option<Decoded> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let (checksum, mut rest) = rest.split_first_chunk::<16>()?;
    let covered = blake3::hash(&bytes[..12 + body.len()]);
    if magic != MAGIC || covered.as_bytes()[..16] != *checksum {
        return None;
    }
    let info = GroupInfo::decode(body).ok()?;
    let mut synced = Bitmap::new(info.blocks);
    let mut written = Bitmap::new(info.blocks);
    let mut entries = 0;
    let mut written_under = None;
    while let Some((entry, next)) = decode_entry(rest, entries, info.blocks) {
        match entry {
            Entry::Synced(ranges) => insert(&mut synced, ranges),
            Entry::Written(ranges) => insert(&mut written, ranges),
            Entry::Opened(boot) => {
                if boot.is_none() || boot != written_under {
                    written = Bitmap::new(info.blocks);
                }
                written_under = boot;
            }
        }
        entries += 1;
        rest = next;
    }
    if boot.is_none() || boot != written_under {
        written = Bitmap::new(info.blocks);
    }
    Some(Decoded { info, synced, written, len: (bytes.len() - rest.len()) as u64, entries })
}

fn insert(blocks: &mut Bitmap, ranges: Vec<Range<u32>>) {
    ranges.into_iter().for_each(|range| blocks.insert_range(range.start, range.end));
}

enum Entry {
    Synced(Vec<Range<u32>>),
    Written(Vec<Range<u32>>),
    Opened(BootId),
}

fn decode_entry(bytes: &[u8], number: u64, blocks: u32) -> Option<(Entry, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let (payload, rest) = rest.split_at_checked(len)?;
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_LEN>()?;
    if entry_checksum(number, &bytes[..HEAD_LEN + len]) != *checksum {
        return None;
    }
    let entry = match head[0] {
        KIND_SYNCED => Entry::Synced(decode_ranges(payload, blocks)?),
        KIND_WRITTEN => Entry::Written(decode_ranges(payload, blocks)?),
        KIND_OPENED => {
            Entry::Opened(NonZeroU128::new(u128::from_le_bytes(payload.try_into().ok()?)))
        }
        _ => return None,
    };
    Some((entry, rest))
}

fn decode_ranges(payload: &[u8], blocks: u32) -> Option<Vec<Range<u32>>> {
    let (pairs, odd) = payload.as_chunks::<8>();
    let ranges = pairs.iter().map(|pair| {
        let [a, b, c, d, e, f, g, h] = *pair;
        let range = u32::from_le_bytes([a, b, c, d])..u32::from_le_bytes([e, f, g, h]);
        (range.start < range.end && range.end <= blocks).then_some(range)
    });
    let ranges = ranges.collect::<Option<Vec<_>>>()?;
    odd.is_empty().then_some(ranges)
}

/// The entry with this number that claims `ranges`.
fn claim(kind: u8, number: u64, ranges: &[Range<u32>]) -> Vec<u8> {
    let numbers = ranges.iter().flat_map(|range| [range.start, range.end]);
    let payload: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    entry(kind, number, &payload)
}

/// The entry with this number that says under which boot id the next ones are written.
fn opened(number: u64, boot: BootId) -> Vec<u8> {
    entry(KIND_OPENED, number, &boot.map_or(0, NonZeroU128::get).to_le_bytes())
}

fn entry(kind: u8, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(payload);
    let checksum = entry_checksum(number, &bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

fn entry_checksum(number: u64, bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes()).update(bytes);
    *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
}

impl Record {
    /// Takes up a record that was read as `decoded`: cuts its torn tail, and says on disk under
    /// which boot id it goes on.
    pub(crate) fn resume(file: File, decoded: &Decoded, boot: BootId) -> io::Result<Record> {
        file.set_len(decoded.len)?;
        let file = Arc::new(file);
        let mut record = Record { file, len: decoded.len, entries: decoded.entries };
        record.append(&opened(record.entries, boot), 1)?;
        record.file.sync_data()?;
        Ok(record)
    }

    /// Claims a block that was written and may not be on disk, with one write.
    pub(crate) fn claim_written(&mut self, block: u32) -> io::Result<()> {
        let range = block..block + 1;
        self.append(&claim(KIND_WRITTEN, self.entries, &[range]), 1)
    }

    /// Claims blocks, which must be on disk; the file that is returned is to be synced. After an
    /// error the record is as it was.
    pub(crate) fn claim_synced(&mut self, blocks: &mut Vec<u32>) -> io::Result<Arc<File>> {
        blocks.sort_unstable();
        blocks.dedup();
        let mut bytes = Vec::new();
        let mut count = 0;
        for ranges in to_ranges(blocks).chunks(RANGES_MAX) {
            bytes.extend_from_slice(&claim(KIND_SYNCED, self.entries + count, ranges));
            count += 1;
        }
        self.append(&bytes, count)?;
        Ok(Arc::clone(&self.file))
    }

    /// Disowns what was written and is not claimed as synced: the kernel may have lost it.
    pub(crate) fn disown_written(&mut self) -> io::Result<()> {
        self.append(&opened(self.entries, None), 1)?;
        self.file.sync_data()
    }

    fn append(&mut self, bytes: &[u8], entries: u64) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(bytes, self.len) {
            // The tail is torn; if it cannot be cut now, the next start does.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += bytes.len() as u64;
        self.entries += entries;
        Ok(())
    }
}

/// Ascending numbers as ranges.
fn to_ranges(blocks: &[u32]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for &block in blocks {
        match ranges.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => ranges.push(block..block + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests;
