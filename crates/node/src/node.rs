//! A node: one listener, many groups.

use crate::config::{FetchOptions, NodeConfig, ShareOptions};
use crate::error::{BindError, FetchError, ShareError};
use crate::group::Group;
use crate::ticket::Ticket;
use std::path::Path;

/// One listener and any number of groups.
pub struct Node {
    config: NodeConfig,
}

impl Node {
    /// Opens the listener. Must be called within a tokio runtime.
    pub async fn bind(config: NodeConfig) -> Result<Node, BindError> {
        Ok(Node { config })
    }

    /// Makes a file or a directory available: hashes it (or finds that it has before) and serves
    /// it. A content shared before keeps its key, secret and port, so its old tickets work.
    pub async fn share(&self, path: &Path, options: ShareOptions) -> Result<Group, ShareError> {
        let _ = (path, options, &self.config);
        Err(ShareError::SharedAlready)
    }

    /// Joins the group of `ticket` and begins to fetch its content, continuing where an earlier
    /// fetch into the same directory ended. Ready when the group's parameters are known and the
    /// files are open.
    pub async fn fetch(&self, ticket: Ticket, options: FetchOptions) -> Result<Group, FetchError> {
        let _ = (ticket, options);
        Err(FetchError::Refused)
    }

    /// Leaves every group in good order, within about three seconds.
    pub async fn close(self) {}
}
