//! What a source keeps of a content between runs: key, join secret, port, signed parameters and
//! the peers it knew, so that old tickets go on working.
//!
//! One JSON file per content in `shares/` of the state directory, readable by its owner only, and
//! a lock beside it: two processes never show the same key.

use crate::content::GroupInfo;
use crate::identity::{self, Identity};
use anabranch_proto::id::PeerInfo;
use anabranch_proto::link::handshake::JoinSecret;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes a state file may have.
const FILE_LEN_MAX: u64 = 64 * 1024;

/// The file's content.
#[derive(Clone, Serialize, Deserialize)]
struct File1 {
    version: u32,
    seed: [u8; 32],
    secret: [u8; 16],
    port: Option<u16>,
    signed: Vec<u8>,
    peers: Vec<PeerInfo>,
}

/// A source's state of one content, locked while it lives.
pub(crate) struct ShareState {
    path: PathBuf,
    file: File1,
    _lock: Flock<File>,
}

/// Why the state of a content cannot be used.
pub(crate) enum StateError {
    /// Another process has it.
    Locked,
    /// It cannot be read or written.
    Io(PathBuf, io::Error),
}

impl ShareState {
    /// The state of the content that `info` describes (its `source` does not matter); new when
    /// there is none.
    pub(crate) fn open(dir: &Path, info: &GroupInfo) -> Result<ShareState, StateError> {
        let dir = dir.join("shares");
        let failed = |error| StateError::Io(dir.clone(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        let name = name_of(info);
        let lock = lock(&dir.join(format!("{name}.lock")))?;
        let path = dir.join(format!("{name}.json"));
        let failed = |error| StateError::Io(path.clone(), error);
        let file = match read(&path).map_err(failed)? {
            Some(file) => file,
            None => File1 {
                version: 1,
                seed: identity::random().map_err(failed)?,
                secret: identity::random().map_err(failed)?,
                port: None,
                signed: Vec::new(),
                peers: Vec::new(),
            },
        };
        Ok(ShareState { path, file, _lock: lock })
    }

    pub(crate) fn identity(&self) -> io::Result<Identity> {
        Identity::from_seed(self.file.seed)
    }

    pub(crate) fn secret(&self) -> JoinSecret {
        JoinSecret(self.file.secret)
    }

    /// The port that old tickets name.
    pub(crate) fn port(&self) -> Option<u16> {
        self.file.port
    }

    /// The signed parameters of earlier runs; empty when there were none.
    pub(crate) fn signed(&self) -> &[u8] {
        &self.file.signed
    }

    /// Members that were there when the last run ended.
    pub(crate) fn peers(&self) -> &[PeerInfo] {
        &self.file.peers
    }

    /// Keeps what a run begins with.
    pub(crate) fn keep(&mut self, port: Option<u16>, signed: &[u8]) -> Result<(), StateError> {
        self.file.port = port;
        self.file.signed = signed.to_vec();
        self.save().map_err(|error| StateError::Io(self.path.clone(), error))
    }

    /// Keeps the members known now.
    pub(crate) fn keep_peers(&mut self, peers: Vec<PeerInfo>) -> io::Result<()> {
        if peers == self.file.peers {
            return Ok(());
        }
        self.file.peers = peers;
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&self.file)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// The group depends on all of this: the same content cut otherwise is another group.
fn name_of(info: &GroupInfo) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("anabranch 1 shared content");
    hasher.update(&info.root);
    hasher.update(&info.block_size.to_le_bytes());
    hasher.update(format!("{:?}", info.system).as_bytes());
    hasher.update(info.name().as_encoded_bytes());
    hasher.finalize().to_hex()[..32].to_string()
}

fn lock(path: &Path) -> Result<Flock<File>, StateError> {
    let failed = |error| StateError::Io(path.to_path_buf(), error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    Flock::lock(file.map_err(failed)?, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        match errno {
            nix::errno::Errno::EWOULDBLOCK => StateError::Locked,
            errno => failed(errno.into()),
        }
    })
}

fn read(path: &Path) -> io::Result<Option<File1>> {
    let len = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = || io::Error::other("it is damaged: remove it (old tickets end with it)");
    if len > FILE_LEN_MAX {
        return Err(damaged());
    }
    let file: File1 = serde_json::from_slice(&fs::read(path)?).map_err(|_| damaged())?;
    let sound = file.version == 1 && file.peers.iter().all(|peer| peer.contact.is_valid());
    if sound { Ok(Some(file)) } else { Err(damaged()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Kind, Mtime};
    use anabranch_proto::id::{Contact, PeerId};
    use std::os::unix::fs::PermissionsExt;

    fn info() -> GroupInfo {
        GroupInfo {
            version: 1,
            root: [3; 32],
            kind: Kind::File { name: b"x".to_vec(), len: 1, mode: 0o644, mtime: Mtime::default() },
            block_size: 16 * 1024,
            blocks: 1,
            system: anabranch_proto::overlay::System::Star,
            source: PeerId([0; 32]),
        }
    }

    fn open(dir: &Path, info: &GroupInfo) -> Option<ShareState> {
        ShareState::open(dir, info).ok()
    }

    #[test]
    fn a_content_keeps_its_keys_and_another_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = open(dir.path(), &info()).unwrap();
        assert!(first.keep(Some(7), b"signed").is_ok());
        let peer = PeerInfo { id: PeerId([9; 32]), contact: Contact::default() };
        first.keep_peers(vec![peer.clone()]).unwrap();
        let id = first.identity().unwrap().id();
        let secret = first.secret();
        drop(first);
        let again = open(dir.path(), &info()).unwrap();
        assert_eq!(again.identity().unwrap().id(), id);
        assert!(again.secret() == secret);
        assert_eq!((again.port(), again.signed()), (Some(7), &b"signed"[..]));
        assert_eq!(again.peers(), [peer]);
        let mut other = info();
        other.block_size *= 2;
        assert_ne!(open(dir.path(), &other).unwrap().identity().unwrap().id(), id);
    }

    #[test]
    fn only_one_process_has_a_contents_key_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path(), &info()).unwrap();
        assert!(matches!(ShareState::open(dir.path(), &info()), Err(StateError::Locked)));
        drop(first);
        assert!(open(dir.path(), &info()).is_some());
    }

    #[test]
    fn only_its_owner_can_read_a_state_file_and_a_damaged_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path(), &info()).unwrap();
        assert!(state.keep(None, b"").is_ok());
        let path = state.path.clone();
        drop(state);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "{}").unwrap();
        assert!(matches!(ShareState::open(dir.path(), &info()), Err(StateError::Io(..))));
    }
}
