//! How a command fails: an exit code and one sentence that says what, and what to do.

use anabranch_node::{BindError, ErrorKind, FetchError, GroupError, ShareError, TicketError};
use anabranch_world::emu::EmuError;
use std::fmt;

/// The exit code of a command that the user interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// As documented in `docs/cli.md`.
    pub(crate) code: u8,
    text: String,
}

impl Failure {
    /// A failure of this class.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Failure {
        Failure { code: kind.exit_code(), text: text.into() }
    }

    /// A wrong argument.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Usage, text)
    }

    /// The local disk.
    pub(crate) fn storage(text: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Storage, text)
    }

    /// Anything else.
    pub(crate) fn other(text: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Other, text)
    }

    /// The user interrupted; `text` says what is kept.
    pub(crate) fn interrupted(text: impl Into<String>) -> Failure {
        Failure { code: INTERRUPTED, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Failure {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<ShareError> for Failure {
    fn from(error: ShareError) -> Failure {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Failure {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<EmuError> for Failure {
    fn from(error: EmuError) -> Failure {
        let kind = match error {
            EmuError::Missing(_) => ErrorKind::Capability,
            EmuError::Refused(_) => ErrorKind::Usage,
            EmuError::Failed(_) => ErrorKind::Other,
        };
        Failure::new(kind, error.to_string())
    }
}
