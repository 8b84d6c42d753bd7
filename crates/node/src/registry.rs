//! The groups of a node: found by tag when a hello comes, their keys by server name before that.

use crate::group::Shared;
use crate::tls;
use anabranch_proto::link::handshake::GroupTag;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The groups of a node.
#[derive(Default)]
pub(crate) struct Registry {
    groups: Mutex<BTreeMap<GroupTag, Arc<Shared>>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({} groups)", self.lock().len())
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupTag, Arc<Shared>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a group; false when the node is in it already.
    pub(crate) fn add(&self, group: Arc<Shared>) -> bool {
        let mut groups = self.lock();
        if groups.contains_key(&group.membership.tag) {
            return false;
        }
        groups.insert(group.membership.tag, group);
        true
    }

    pub(crate) fn remove(&self, tag: &GroupTag) {
        self.lock().remove(tag);
    }

    /// The group with this tag, if it shows the key that the dialler asked for.
    pub(crate) fn find(&self, tag: &GroupTag, server_name: &str) -> Option<Arc<Shared>> {
        let group = self.lock().get(tag).cloned()?;
        (tls::server_name(&group.identity.id()) == server_name).then_some(group)
    }

    pub(crate) fn groups(&self) -> Vec<Arc<Shared>> {
        self.lock().values().cloned().collect()
    }
}

impl ResolvesServerCert for Registry {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let wanted = hello.server_name()?;
        let groups = self.lock();
        let group =
            groups.values().find(|group| tls::server_name(&group.identity.id()) == wanted)?;
        Some(group.key.clone())
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }
}
