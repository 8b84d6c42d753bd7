//! The record of what a partial content holds: an append-only file that survives a kill and a
//! power loss at any moment.
//!
//! ```text
//! "ABrecrd1"  length: u32  group parameters  checksum [16]
//! entry: kind: u8 (1)  length: u32  (from: u32, to: u32)*  checksum [8]
//! ```
//! Little endian; a checksum is the beginning of the BLAKE3 of all before it in the header or
//! entry, an entry's with the entry's number in front. An entry claims blocks `from..to`; it is
//! written after they are on disk. What follows the last whole entry is cut.

use crate::content::GroupInfo;
use anabranch_proto::summary::Bitmap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 8] = b"ABrecrd1";
const KIND_BLOCKS: u8 = 1;
const HEAD_LEN: usize = 5;
const CHECKSUM_LEN: usize = 8;
/// The most ranges one entry claims.
const RANGES_MAX: usize = 8192;

/// A record open for appending.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    len: u64,
    entries: u64,
}

/// What a record says.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The content's parameters.
    pub(crate) info: GroupInfo,
    /// The blocks held.
    pub(crate) held: Bitmap,
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

/// Reads a record; `None` when not even its header is whole.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let (checksum, mut rest) = rest.split_first_chunk::<16>()?;
    let covered = blake3::hash(&bytes[..12 + body.len()]);
    if magic != MAGIC || covered.as_bytes()[..16] != *checksum {
        return None;
    }
    let info = GroupInfo::decode(body).ok()?;
    let mut held = Bitmap::new(info.blocks);
    let mut entries = 0;
    while let Some((ranges, next)) = decode_entry(rest, entries, info.blocks) {
        ranges.into_iter().for_each(|range| held.insert_range(range.start, range.end));
        entries += 1;
        rest = next;
    }
    Some(Decoded { info, held, len: (bytes.len() - rest.len()) as u64, entries })
}

fn decode_entry(bytes: &[u8], number: u64, blocks: u32) -> Option<(Vec<Range<u32>>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let (payload, rest) = rest.split_at_checked(len)?;
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_LEN>()?;
    if head[0] != KIND_BLOCKS || entry_checksum(number, &bytes[..HEAD_LEN + len]) != *checksum {
        return None;
    }
    let (pairs, odd) = payload.as_chunks::<8>();
    let ranges = pairs.iter().map(|pair| {
        let [a, b, c, d, e, f, g, h] = *pair;
        let range = u32::from_le_bytes([a, b, c, d])..u32::from_le_bytes([e, f, g, h]);
        (range.start < range.end && range.end <= blocks).then_some(range)
    });
    let ranges = ranges.collect::<Option<Vec<_>>>()?;
    odd.is_empty().then_some((ranges, rest))
}

/// The entry with this number that claims `ranges`.
pub(crate) fn entry(number: u64, ranges: &[Range<u32>]) -> Vec<u8> {
    let mut bytes = vec![KIND_BLOCKS];
    bytes.extend_from_slice(&(ranges.len() as u32 * 8).to_le_bytes());
    for range in ranges {
        bytes.extend_from_slice(&range.start.to_le_bytes());
        bytes.extend_from_slice(&range.end.to_le_bytes());
    }
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
    /// Takes up a record that was read as `decoded`: cuts its torn tail.
    pub(crate) fn resume(file: File, decoded: &Decoded) -> io::Result<Record> {
        file.set_len(decoded.len)?;
        Ok(Record { file, len: decoded.len, entries: decoded.entries })
    }

    /// Claims blocks, which must be on disk, and puts the claim on disk. After an error the record
    /// is as it was.
    pub(crate) fn append(&mut self, blocks: &mut Vec<u32>) -> io::Result<()> {
        blocks.sort_unstable();
        blocks.dedup();
        let mut bytes = Vec::new();
        let mut entries = self.entries;
        for ranges in to_ranges(blocks).chunks(RANGES_MAX) {
            bytes.extend_from_slice(&entry(entries, ranges));
            entries += 1;
        }
        let written = self.file.write_all_at(&bytes, self.len).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // The tail is torn; if it cannot be cut now, the next start does.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += bytes.len() as u64;
        self.entries = entries;
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
