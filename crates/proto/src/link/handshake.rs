//! The first frames of a session: version, join proof, contact.
//!
//! Both ends already know each other's key (TLS with raw public keys). The dialler's [`Hello`]
//! names the group by a tag only holders of the join secret can make, and proves the secret with
//! a MAC over this connection's own exporter value, so a proof cannot be replayed on another
//! connection. Without a valid hello the listener says nothing and closes; the dialler believes
//! the listener only after the same proof the other way. The MAC is keyed BLAKE3.

use crate::id::Contact;
use serde::{Deserialize, Serialize};

/// The protocol version this code speaks.
pub const VERSION: u16 = 1;
/// The most bytes an encoded hello may have: all that a listener buffers for a stranger.
pub const HELLO_LEN_MAX: usize = 512;

/// Group members share it; whoever holds the ticket has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JoinSecret(pub [u8; 16]);

impl std::fmt::Debug for JoinSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JoinSecret(…)")
    }
}

/// Names a group to those who know its secret, and tells nothing to others.
pub type GroupTag = [u8; 16];

/// Who says a hello: each side's proof is of no use to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one who made the connection.
    Dialler,
    /// The one who accepted it.
    Listener,
}

/// The first frame in each direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version the sender speaks.
    pub version_min: u16,
    /// The newest.
    pub version_max: u16,
    /// Which group.
    pub group: GroupTag,
    /// Proof of the join secret on this connection.
    pub proof: [u8; 32],
    /// How others reach the sender.
    pub contact: Contact,
}

/// Why a hello is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HelloError {
    /// Not a hello, or one beyond its bounds.
    #[error("the peer's first message is not a hello")]
    Malformed,
    /// No version in common.
    #[error("the peer speaks no protocol version that this program speaks")]
    Version,
    /// Another group.
    #[error("the peer is not in this group")]
    Group,
    /// The proof does not fit the secret and this connection.
    #[error("the peer did not prove the join secret")]
    Proof,
}

/// The tag of the group with this content root and join secret.
pub fn group_tag(root: &[u8; 32], secret: &JoinSecret) -> GroupTag {
    let mac = mac(secret, "anabranch group", root);
    let mut tag = GroupTag::default();
    tag.copy_from_slice(&mac[..16]);
    tag
}

impl Hello {
    /// The hello of `side` on the connection with this TLS exporter value.
    pub fn new(
        side: Side,
        group: GroupTag,
        secret: &JoinSecret,
        exporter: &[u8; 32],
        contact: Contact,
    ) -> Hello {
        let proof = prove(side, secret, exporter);
        Hello { version_min: VERSION, version_max: VERSION, group, proof, contact }
    }

    /// The hello as bytes.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Reads a hello; its proof is not checked yet.
    pub fn decode(bytes: &[u8]) -> Result<Hello, HelloError> {
        if bytes.len() > HELLO_LEN_MAX {
            return Err(HelloError::Malformed);
        }
        let hello: Hello = postcard::from_bytes(bytes).map_err(|_| HelloError::Malformed)?;
        if !hello.contact.is_valid() || hello.version_min > hello.version_max {
            return Err(HelloError::Malformed);
        }
        Ok(hello)
    }

    /// Checks a hello said by `side` against the group and secret this end has.
    pub fn check(
        &self,
        side: Side,
        group: &GroupTag,
        secret: &JoinSecret,
        exporter: &[u8; 32],
    ) -> Result<(), HelloError> {
        if !(self.version_min..=self.version_max).contains(&VERSION) {
            return Err(HelloError::Version);
        }
        if self.group != *group {
            return Err(HelloError::Group);
        }
        // blake3's Hash compares in constant time.
        let expected = blake3::Hash::from_bytes(prove(side, secret, exporter));
        if expected != blake3::Hash::from_bytes(self.proof) {
            return Err(HelloError::Proof);
        }
        Ok(())
    }
}

fn prove(side: Side, secret: &JoinSecret, exporter: &[u8; 32]) -> [u8; 32] {
    let context = match side {
        Side::Dialler => "anabranch join, dialler",
        Side::Listener => "anabranch join, listener",
    };
    mac(secret, context, exporter)
}

fn mac(secret: &JoinSecret, context: &str, data: &[u8]) -> [u8; 32] {
    let key = blake3::derive_key(context, &secret.0);
    *blake3::keyed_hash(&key, data).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: JoinSecret = JoinSecret([7; 16]);

    fn hello(side: Side) -> Hello {
        Hello::new(side, group_tag(&[1; 32], &SECRET), &SECRET, &[2; 32], Contact::default())
    }

    #[test]
    fn a_hello_is_accepted_only_for_its_group_secret_connection_and_side() {
        let hello = hello(Side::Dialler);
        let decoded = Hello::decode(&hello.encode()).unwrap();
        assert_eq!(decoded, hello);
        let tag = group_tag(&[1; 32], &SECRET);
        assert_eq!(hello.check(Side::Dialler, &tag, &SECRET, &[2; 32]), Ok(()));
        assert_eq!(hello.check(Side::Listener, &tag, &SECRET, &[2; 32]), Err(HelloError::Proof));
        assert_eq!(hello.check(Side::Dialler, &tag, &SECRET, &[3; 32]), Err(HelloError::Proof));
        let other = JoinSecret([8; 16]);
        assert_eq!(hello.check(Side::Dialler, &tag, &other, &[2; 32]), Err(HelloError::Proof));
        let elsewhere = group_tag(&[9; 32], &SECRET);
        assert_eq!(
            hello.check(Side::Dialler, &elsewhere, &SECRET, &[2; 32]),
            Err(HelloError::Group)
        );
    }

    #[test]
    fn a_secret_never_shows_in_debug_output() {
        assert!(!format!("{SECRET:?}").contains('7'));
    }

    #[test]
    fn an_oversized_contact_or_frame_is_refused() {
        let mut big = hello(Side::Listener);
        big.contact.addresses = vec![0; Contact::LEN_MAX + 1];
        assert_eq!(Hello::decode(&big.encode()), Err(HelloError::Malformed));
        assert_eq!(Hello::decode(&[0; HELLO_LEN_MAX + 1]), Err(HelloError::Malformed));
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\n"), Err(HelloError::Malformed));
    }

    #[test]
    fn a_peer_of_a_later_version_that_still_speaks_ours_is_accepted() {
        let mut later = hello(Side::Dialler);
        later.version_max = VERSION + 5;
        let tag = group_tag(&[1; 32], &SECRET);
        assert_eq!(later.check(Side::Dialler, &tag, &SECRET, &[2; 32]), Ok(()));
        later.version_min = VERSION + 1;
        assert_eq!(later.check(Side::Dialler, &tag, &SECRET, &[2; 32]), Err(HelloError::Version));
    }
}
