//! Keys: what a member proves on every link.

use anabranch_proto::id::PeerId;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// An Ed25519 key pair. Its public half is the member's [`PeerId`].
#[derive(Clone)]
pub struct Identity {
    seed: [u8; 32],
    pair: Arc<Ed25519KeyPair>,
    id: PeerId,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.id)
    }
}

impl Identity {
    /// A new random key.
    pub fn generate() -> io::Result<Identity> {
        Identity::from_seed(random()?)
    }

    /// The key with this seed (RFC 8032's private key).
    pub fn from_seed(seed: [u8; 32]) -> io::Result<Identity> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| io::Error::other("this is not an Ed25519 key"))?;
        let mut id = PeerId([0; 32]);
        id.0.copy_from_slice(pair.public_key().as_ref());
        Ok(Identity { seed, pair: Arc::new(pair), id })
    }

    /// The key kept in `path`; made, readable by its owner only, when there is no such file.
    pub fn load_or_create(path: &Path) -> io::Result<Identity> {
        match File::open(path) {
            Ok(file) => Identity::read(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = Identity::generate()?;
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(hex(&identity.seed).as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()?;
                Ok(identity)
            }
            Err(error) => Err(error),
        }
    }

    fn read(file: File) -> io::Result<Identity> {
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(io::Error::other("others can read it: chmod 600 it, or use another"));
        }
        let mut text = String::new();
        file.take(100).read_to_string(&mut text)?;
        let seed = blake3::Hash::from_hex(text.trim())
            .map_err(|_| io::Error::other("it is not a key of 64 hexadecimal digits"))?;
        Identity::from_seed(*seed.as_bytes())
    }

    /// The public key.
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The signature of `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }

    /// The key pair.
    pub fn pair(&self) -> &Ed25519KeyPair {
        &self.pair
    }

    pub(crate) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }
}

/// `N` bytes from the system's generator.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_is_the_same_again_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let first = Identity::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Identity::load_or_create(&path).unwrap().id(), first.id());
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        Identity::load_or_create(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Identity::load_or_create(&path).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "not a key").unwrap();
        assert!(Identity::load_or_create(&path).is_err());
    }

    #[test]
    fn a_key_never_shows_its_private_half_in_debug_output() {
        let identity = Identity::from_seed([7; 32]).unwrap();
        assert!(!format!("{identity:?}").contains("0707"));
    }
}
