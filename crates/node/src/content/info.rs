//! A group's parameters: made and signed by the source once, never changed.
//!
//! On the wire they are an Ed25519 signature (64 bytes, over `CONTEXT` and what follows it) and
//! the postcard encoding of [`GroupInfo`].

use super::{BLOCKS_MAX, is_block_size};
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use thiserror::Error;

/// The version this program writes and reads.
pub const VERSION: u8 = 1;
/// The most bytes signed parameters may have.
pub const SIGNED_LEN_MAX: usize = 1024;
/// The most bytes a manifest may have (some two million files).
pub const MANIFEST_LEN_MAX: u64 = 256 << 20;
/// The most bytes a name may have.
pub const NAME_LEN_MAX: usize = 255;
/// What a signature covers before the parameters, so that it can mean nothing else.
const CONTEXT: &[u8] = b"anabranch group parameters 1\0";
const SIGNATURE_LEN: usize = 64;

/// A group's parameters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupInfo {
    /// [`VERSION`] of the maker.
    pub version: u8,
    /// The content's identity: BLAKE3 of the file, or of the directory's manifest.
    pub root: [u8; 32],
    /// What the content is.
    pub kind: Kind,
    /// Bytes per block; a tree's last block may be shorter.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u32,
    /// The system that moves the blocks.
    pub system: System,
    /// The source's public key.
    pub source: PeerId,
}

/// What a content is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// One file.
    File {
        /// Its name: bytes, not always UTF-8, never with a slash.
        name: Vec<u8>,
        /// Its length in bytes.
        len: u64,
        /// Its permission bits, within 0o777.
        mode: u16,
        /// When it was modified.
        mtime: Mtime,
    },
    /// A directory and all below it.
    Directory {
        /// Its name: bytes, not always UTF-8, never with a slash.
        name: Vec<u8>,
        /// The length of its manifest in bytes.
        manifest_len: u64,
        /// The lengths of its files added up, in bytes.
        total_len: u64,
        /// How many files it has.
        files: u32,
        /// Its permission bits, within 0o777.
        mode: u16,
        /// When it was modified.
        mtime: Mtime,
    },
}

/// A modification time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Mtime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds, below 10^9.
    pub nanos: u32,
}

/// Why group parameters were refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum InfoError {
    /// The signature is not the source's.
    #[error("the group's parameters are not signed by the source that the ticket names")]
    Signature,
    /// They belong to another content.
    #[error("the group's parameters are of another content than the ticket names")]
    OtherContent,
    /// A later version made them.
    #[error("the group's parameters have version {0}, later than this program knows: update it")]
    Version(u8),
    /// They make no sense.
    #[error("the group's parameters are malformed: {0}")]
    Malformed(&'static str),
}

impl GroupInfo {
    /// The content's name as the file system takes it.
    pub fn name(&self) -> &OsStr {
        let (Kind::File { name, .. } | Kind::Directory { name, .. }) = &self.kind;
        OsStr::from_bytes(name)
    }

    /// The bytes of all files, in bytes; what progress is measured against together with
    /// [`GroupInfo::manifest_len`].
    pub fn total_len(&self) -> u64 {
        match self.kind {
            Kind::File { len, .. } => len,
            Kind::Directory { total_len, .. } => total_len,
        }
    }

    /// The length of the manifest in bytes; zero for a file.
    pub fn manifest_len(&self) -> u64 {
        match self.kind {
            Kind::File { .. } => 0,
            Kind::Directory { manifest_len, .. } => manifest_len,
        }
    }

    /// The length of tree 0 in bytes: the file, or the manifest.
    pub fn first_tree_len(&self) -> u64 {
        match self.kind {
            Kind::File { len, .. } => len,
            Kind::Directory { manifest_len, .. } => manifest_len,
        }
    }

    /// The parameters signed with the source's key, whose public half must be
    /// [`GroupInfo::source`].
    pub fn sign(&self, key: &Ed25519KeyPair) -> Vec<u8> {
        let body = postcard::to_stdvec(self).expect("plain data always encodes");
        let mut signed = key.sign(&message(&body)).as_ref().to_vec();
        signed.extend_from_slice(&body);
        signed
    }

    /// Reads signed parameters and checks that `source` signed them, that they are of the content
    /// `root`, and that they make sense.
    pub fn open(signed: &[u8], source: &PeerId, root: &[u8; 32]) -> Result<GroupInfo, InfoError> {
        if signed.len() > SIGNED_LEN_MAX {
            return Err(InfoError::Malformed("too long"));
        }
        let (signature, body) =
            signed.split_at_checked(SIGNATURE_LEN).ok_or(InfoError::Malformed("too short"))?;
        UnparsedPublicKey::new(&ED25519, &source.0)
            .verify(&message(body), signature)
            .map_err(|_| InfoError::Signature)?;
        let info = GroupInfo::decode(body)?;
        if info.source != *source {
            return Err(InfoError::Signature);
        }
        if info.root != *root {
            return Err(InfoError::OtherContent);
        }
        Ok(info)
    }

    /// Reads unsigned parameters (a record's own copy) and checks that they make sense.
    pub fn decode(body: &[u8]) -> Result<GroupInfo, InfoError> {
        match body.first() {
            None => return Err(InfoError::Malformed("empty")),
            Some(&VERSION) => {}
            Some(&version) => return Err(InfoError::Version(version)),
        }
        let (info, rest) = postcard::take_from_bytes::<GroupInfo>(body)
            .map_err(|_| InfoError::Malformed("cannot be decoded"))?;
        if !rest.is_empty() {
            return Err(InfoError::Malformed("more bytes than expected"));
        }
        info.check()?;
        Ok(info)
    }

    /// The unsigned encoding that [`GroupInfo::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain data always encodes")
    }

    /// Checks that the numbers fit together.
    pub fn check(&self) -> Result<(), InfoError> {
        let refuse = |why| Err(InfoError::Malformed(why));
        let (Kind::File { name, mode, mtime, .. } | Kind::Directory { name, mode, mtime, .. }) =
            &self.kind;
        if !is_file_name(name) {
            return refuse("the name is not a file name");
        }
        if *mode > 0o777 || mtime.nanos >= 1_000_000_000 {
            return refuse("mode or time out of range");
        }
        if !is_block_size(self.block_size) {
            return refuse("the block size is not a power of two within bounds");
        }
        if self.blocks > BLOCKS_MAX {
            return refuse("too many blocks");
        }
        let first = self.first_tree_len().div_ceil(u64::from(self.block_size));
        let blocks = u64::from(self.blocks);
        match self.kind {
            Kind::File { .. } if blocks != first => refuse("blocks do not match the length"),
            Kind::File { .. } => Ok(()),
            Kind::Directory { manifest_len, .. }
                if manifest_len == 0 || manifest_len > MANIFEST_LEN_MAX =>
            {
                refuse("the manifest's length is out of bounds")
            }
            Kind::Directory { total_len, .. } if blocks < first || (blocks - first) > total_len => {
                refuse("blocks do not match the lengths")
            }
            Kind::Directory { .. } => Ok(()),
        }
    }
}

/// Whether `name` can name a file in a directory: not empty, not `.` or `..`, no slash, no NUL, at
/// most [`NAME_LEN_MAX`] bytes.
pub fn is_file_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= NAME_LEN_MAX
        && !name.iter().any(|&byte| byte == b'/' || byte == 0)
}

fn message(body: &[u8]) -> Vec<u8> {
    [CONTEXT, body].concat()
}

#[cfg(test)]
mod tests;
