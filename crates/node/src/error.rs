//! What can go wrong, one enum per operation; every error is one sentence that says what to do.

use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// The class of an error, for exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Anything else.
    Other,
    /// A wrong argument.
    Usage,
    /// The source or its peers cannot be reached.
    Unreachable,
    /// A wrong secret or key.
    Refused,
    /// A hash or a signature does not fit.
    Integrity,
    /// The local disk: full, permission, exists.
    Storage,
    /// Only a part was reached.
    Partial,
    /// The machine lacks something (root, namespaces, a tool).
    Capability,
}

impl ErrorKind {
    /// The exit code of the class.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Other => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Unreachable => 3,
            ErrorKind::Refused => 4,
            ErrorKind::Integrity => 5,
            ErrorKind::Storage => 6,
            ErrorKind::Partial => 7,
            ErrorKind::Capability => 8,
        }
    }
}

/// Why a node could not be made.
#[derive(Debug, Error)]
pub enum BindError {
    /// The address to listen on.
    #[error("cannot listen on {address}: {error}; choose another address with --listen")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// An address to advertise.
    #[error("cannot advertise {address:?}: {reason}; give HOST:PORT or IP:PORT")]
    Advertise {
        /// As it was given.
        address: String,
        /// Why.
        reason: String,
    },
    /// The congestion control is not known to the kernel.
    #[error(
        "the kernel has no congestion control {name:?}; see /proc/sys/net/ipv4/tcp_available_congestion_control"
    )]
    Congestion {
        /// As it was given.
        name: String,
    },
}

impl BindError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            BindError::Listen { error, .. } => match error.kind() {
                std::io::ErrorKind::PermissionDenied => ErrorKind::Capability,
                _ => ErrorKind::Usage,
            },
            BindError::Advertise { .. } => ErrorKind::Usage,
            BindError::Congestion { .. } => ErrorKind::Capability,
        }
    }
}

/// Why a content could not be shared.
#[derive(Debug, Error)]
pub enum ShareError {
    /// The content cannot be read or described.
    #[error("{text}")]
    Content {
        /// One sentence.
        text: String,
        /// Its class.
        kind: ErrorKind,
    },
    /// Keys and secrets cannot be kept.
    #[error("cannot keep the key of this content in {path}: {error}")]
    State {
        /// Where.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Another process shares the same content with the same key.
    #[error("this content is being shared by another process already; use its ticket")]
    SharedAlready,
}

impl ShareError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ShareError::Content { kind, .. } => *kind,
            ShareError::State { .. } => ErrorKind::Storage,
            ShareError::SharedAlready => ErrorKind::Other,
        }
    }
}

/// Why a fetch could not begin.
#[derive(Debug, Error)]
pub enum FetchError {
    /// Nobody that the ticket names answered.
    #[error(
        "cannot reach the source or any peer that the ticket names ({tried}); check that `anabranch send` still runs and that its port is open"
    )]
    Unreachable {
        /// What was tried.
        tried: String,
    },
    /// They answered, and refused.
    #[error(
        "the source refused this ticket: its secret or key is not (or no longer) right; ask for a new ticket"
    )]
    Refused,
    /// The group's parameters are not what the ticket promises.
    #[error("the peers gave wrong parameters for this ticket: {reason}")]
    Integrity {
        /// What does not fit.
        reason: String,
    },
    /// The local disk.
    #[error("{text}")]
    Storage {
        /// One sentence.
        text: String,
        /// Its class.
        kind: ErrorKind,
    },
    /// The file that keeps this receiver's key.
    #[error("cannot use the identity {path}: {reason}")]
    Identity {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl FetchError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            FetchError::Unreachable { .. } => ErrorKind::Unreachable,
            FetchError::Refused => ErrorKind::Refused,
            FetchError::Integrity { .. } => ErrorKind::Integrity,
            FetchError::Storage { kind, .. } => *kind,
            FetchError::Identity { .. } => ErrorKind::Storage,
        }
    }
}

/// Why a group ended before it was complete.
#[derive(Clone, Debug, Error)]
pub enum GroupError {
    /// Nobody of the group can be reached any more.
    #[error(
        "lost the source and every peer, and could not reach them again; what came is kept, run the same command again to continue"
    )]
    Unreachable,
    /// The local disk.
    #[error("{text}")]
    Storage {
        /// One sentence.
        text: String,
        /// Its class.
        kind: ErrorKind,
    },
    /// It was left before it was complete.
    #[error("the group was left before everything had come")]
    Left,
}

impl GroupError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            GroupError::Unreachable => ErrorKind::Unreachable,
            GroupError::Storage { kind, .. } => *kind,
            GroupError::Left => ErrorKind::Partial,
        }
    }
}
