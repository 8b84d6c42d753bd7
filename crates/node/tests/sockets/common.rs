//! Nodes over loopback for tests: files, directories, time limits.

use anabranch_node::{FetchOptions, Group, Node, NodeConfig, ShareOptions, System, Ticket};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Runs `test` to its end, but not for ever.
pub(crate) async fn within<T>(seconds: u64, test: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(seconds);
    tokio::time::timeout(limit, test).await.expect("the test must end in time")
}

/// A place for a test's files.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of `len` bytes that no two blocks of are the same.
    pub(crate) fn file(&self, name: &str, len: usize) -> PathBuf {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A node's configuration on loopback.
    pub(crate) fn config(&self) -> NodeConfig {
        let mut config = NodeConfig::new(self.path("state"));
        config.listen = Some("127.0.0.1:0".parse().unwrap());
        config
    }

    pub(crate) async fn node(&self) -> Node {
        Node::bind(self.config()).await.unwrap()
    }

    /// Where the receiver `name` puts things.
    pub(crate) fn out(&self, name: &str) -> FetchOptions {
        let dir = self.path(name);
        std::fs::create_dir_all(&dir).unwrap();
        FetchOptions::new(dir)
    }
}

pub(crate) fn options(system: System) -> ShareOptions {
    ShareOptions { system, ..ShareOptions::default() }
}

/// Fetches with a node of its own; gives node, group and the path of what came.
pub(crate) async fn fetch(place: &Place, name: &str, ticket: &Ticket) -> (Node, Group, PathBuf) {
    let node = place.node().await;
    let group = node.fetch(ticket.clone(), place.out(name)).await.unwrap();
    let path = group.wait_complete().await.unwrap();
    (node, group, path)
}

pub(crate) fn b3(path: &Path) -> blake3::Hash {
    blake3::hash(&std::fs::read(path).unwrap())
}
