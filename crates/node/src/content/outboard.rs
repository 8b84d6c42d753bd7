//! Unit values on disk: 32 bytes per verify unit, read block by block when a block is sent, so that
//! memory does not grow with the content. Contents whose blocks are single units need none.

use super::tree::VALUE_LEN;
use super::unit_len;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The unit values of a content's blocks.
#[derive(Debug)]
pub struct Outboard {
    file: Option<File>,
    block_size: u32,
}

impl Outboard {
    /// Keeps unit values in `file`; it is not needed, nor touched, when blocks are single units.
    pub fn new(file: Option<File>, block_size: u32) -> Outboard {
        Outboard { file, block_size }
    }

    /// Whether blocks of this size have unit values to keep.
    pub fn is_needed(block_size: u32) -> bool {
        block_size > unit_len(block_size)
    }

    /// Keeps a block's unit values; a block of one unit has none to keep.
    pub fn write(&self, block: u32, proof: &[u8]) -> io::Result<()> {
        match &self.file {
            Some(file) if !proof.is_empty() => file.write_all_at(proof, self.offset(block)),
            _ => Ok(()),
        }
    }

    /// The unit values of a block of `len` bytes; empty when it is one unit.
    pub fn read(&self, block: u32, len: u32) -> io::Result<Vec<u8>> {
        let unit_len = unit_len(self.block_size);
        if len <= unit_len {
            return Ok(Vec::new());
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut proof = vec![0; len.div_ceil(unit_len) as usize * VALUE_LEN];
        file.read_exact_at(&mut proof, self.offset(block))?;
        Ok(proof)
    }

    /// Puts what was written on disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    fn offset(&self, block: u32) -> u64 {
        let units = u64::from(self.block_size / unit_len(self.block_size));
        u64::from(block) * units * VALUE_LEN as u64
    }
}
