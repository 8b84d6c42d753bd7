//! What can go wrong, one enum per operation; every error is one sentence that says what to do.

use crate::content::{Failure, ScanError};
use crate::store::OpenError;
use anabranch_proto::overlay::System;
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

impl From<Failure> for ErrorKind {
    fn from(failure: Failure) -> ErrorKind {
        match failure {
            Failure::Usage => ErrorKind::Usage,
            Failure::Integrity => ErrorKind::Integrity,
            Failure::Storage => ErrorKind::Storage,
            Failure::Cancelled => ErrorKind::Other,
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
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
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
            BindError::Tls(_) => ErrorKind::Other,
            BindError::Congestion { .. } => ErrorKind::Capability,
        }
    }
}

/// Why a content could not be shared.
#[derive(Debug, Error)]
pub enum ShareError {
    /// The content cannot be read or described.
    #[error(transparent)]
    Content(#[from] ScanError),
    /// Keys and secrets cannot be kept.
    #[error("cannot keep the key of this content in {}: {error}", path.display())]
    State {
        /// Where.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The system gave no key.
    #[error("the system gave no new key: {0}")]
    Key(std::io::Error),
    /// TLS does not take the key.
    #[error("TLS does not take the key of this content: {0}")]
    Tls(rustls::Error),
    /// Another process shares the same content with the same key.
    #[error("this content is being shared by another process already; use its ticket")]
    SharedAlready,
}

impl ShareError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ShareError::Content(error) => error.failure().into(),
            ShareError::State { .. } => ErrorKind::Storage,
            ShareError::Key(_) | ShareError::Tls(_) | ShareError::SharedAlready => ErrorKind::Other,
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
    /// The group runs a system that moves no real files.
    #[error(
        "this group runs {}, which is a rival in the simulator only and moves no real files; ask for a group that runs bullet-prime or star", system.name()
    )]
    NotOffered {
        /// Which.
        system: System,
    },
    /// The local disk.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// This node fetches or shares the same group already.
    #[error("this node is in the group of that ticket already")]
    Already,
    /// The system gave no key.
    #[error("the system gave no new key: {0}")]
    Key(std::io::Error),
    /// TLS does not take the key.
    #[error("TLS does not take the key of this receiver: {0}")]
    Tls(rustls::Error),
    /// The file that keeps this receiver's key.
    #[error("cannot use the identity {}: {error}", path.display())]
    Identity {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl FetchError {
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            FetchError::Unreachable { .. } => ErrorKind::Unreachable,
            FetchError::Refused => ErrorKind::Refused,
            FetchError::Integrity { .. } => ErrorKind::Integrity,
            FetchError::NotOffered { .. } => ErrorKind::Capability,
            FetchError::Storage(error) => error.failure().into(),
            FetchError::Key(_) | FetchError::Tls(_) => ErrorKind::Other,
            FetchError::Already => ErrorKind::Usage,
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
    /// The source contradicts itself.
    #[error("{text}; ask the source to share it again")]
    Integrity {
        /// One sentence.
        text: String,
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
            GroupError::Integrity { .. } => ErrorKind::Integrity,
            GroupError::Left => ErrorKind::Partial,
        }
    }
}
