//! Who is at the far end of which link: kept by a member, read by its parts.

use crate::id::{LinkId, PeerId, PeerInfo};
use std::collections::BTreeMap;

/// The live links of a member, by link and by peer. One link per peer.
#[derive(Debug, Default)]
pub struct Directory {
    by_link: BTreeMap<LinkId, PeerInfo>,
    by_peer: BTreeMap<PeerId, LinkId>,
}

impl Directory {
    /// A link is up.
    pub fn add(&mut self, link: LinkId, peer: PeerInfo) {
        self.by_peer.insert(peer.id, link);
        self.by_link.insert(link, peer);
    }

    /// A link is gone; gives who was there.
    pub fn remove(&mut self, link: LinkId) -> Option<PeerInfo> {
        let peer = self.by_link.remove(&link)?;
        if self.by_peer.get(&peer.id) == Some(&link) {
            self.by_peer.remove(&peer.id);
        }
        Some(peer)
    }

    /// Who is at the far end of `link`.
    pub fn peer(&self, link: LinkId) -> Option<&PeerInfo> {
        self.by_link.get(&link)
    }

    /// The link to `peer`.
    pub fn link(&self, peer: &PeerId) -> Option<LinkId> {
        self.by_peer.get(peer).copied()
    }

    /// All links, in the order they came up.
    pub fn iter(&self) -> impl Iterator<Item = (LinkId, &PeerInfo)> {
        self.by_link.iter().map(|(&link, peer)| (link, peer))
    }
}
