//! What applications choose.

use anabranch_proto::overlay::System;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The port a node listens on when none is chosen; the next free one when it is taken.
pub const PORT_DEFAULT: u16 = 27_182;

/// How a node meets the network.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where to listen. Default `None`: [`PORT_DEFAULT`] on every address, IPv6 and IPv4, or the
    /// next free port. With an address and port 0, any free port.
    pub listen: Option<SocketAddr>,
    /// Addresses (`HOST`, `HOST:PORT`, `IP` or `IP:PORT`) that others shall dial instead of those
    /// of this machine's interfaces. Default none.
    pub advertise: Vec<String>,
    /// Whether to listen at all. Default true. A receiver that does not still serves over the
    /// links it dialled.
    pub accept_inbound: bool,
    /// The most wire bytes per second sent in all. Default no limit.
    pub limit_up: Option<u64>,
    /// The most wire bytes per second received in all. Default no limit.
    pub limit_down: Option<u64>,
    /// The kernel's congestion control for the links, such as `cubic`. Default the system's.
    pub congestion: Option<String>,
    /// Where a source keeps its keys and join secrets, so that old tickets work after a restart.
    pub state_dir: PathBuf,
}

impl NodeConfig {
    /// The defaults, with keys kept in `state_dir`.
    pub fn new(state_dir: PathBuf) -> NodeConfig {
        NodeConfig {
            listen: None,
            advertise: Vec::new(),
            accept_inbound: true,
            limit_up: None,
            limit_down: None,
            congestion: None,
            state_dir,
        }
    }

    /// `$XDG_STATE_HOME/anabranch`, else `~/.local/state/anabranch`; `None` without either.
    pub fn state_dir_default() -> Option<PathBuf> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|state| state.join("anabranch"))
    }
}

/// Told how many of how many bytes are hashed, several times a second, from another thread.
pub type HashingProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a content is shared.
#[derive(Clone, Default)]
pub struct ShareOptions {
    /// The system of the group. Default Bullet′.
    pub system: System,
    /// The block size in bytes, a power of two from 16 KiB to 8 MiB. Default by the size of the
    /// content.
    pub block_size: Option<u32>,
    /// Told how far hashing is. Default nobody.
    pub hashing: Option<HashingProgress>,
}

/// How a content is fetched.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The directory in which the content appears, under its own name.
    pub dir: PathBuf,
    /// Whether a different file of that name may be replaced. Default false.
    pub overwrite: bool,
    /// A file that keeps this receiver's key; made when it is not there. Default `None`: a new
    /// key for every fetch.
    pub identity: Option<PathBuf>,
}

impl FetchOptions {
    /// The defaults, fetching into `dir`.
    pub fn new(dir: PathBuf) -> FetchOptions {
        FetchOptions { dir, overwrite: false, identity: None }
    }
}
