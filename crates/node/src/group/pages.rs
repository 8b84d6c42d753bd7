//! Fetching hash pages: in order, from whoever has them, before the blocks that need them.

use super::links::Links;
use super::messages::Message;
use crate::content::PageId;
use crate::store::Store;
use anabranch_proto::id::LinkId;
use anabranch_proto::link::frame::Channel;
use anabranch_proto::time::{Duration, Time};
use std::collections::BTreeMap;

/// Pages asked for at once, of one link.
const ASKED_PER_LINK_MAX: usize = 4;
/// How long a page is waited for before another peer is asked.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a peer that lacks a page is not asked again.
const LACKS_FOR: Duration = Duration::from_millis(500);
/// How long the member may be kept from a link because the first page has not come over it.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Which pages are asked for, and of whom.
#[derive(Debug, Default)]
pub(super) struct Pages {
    asked: BTreeMap<PageId, (LinkId, Time)>,
    /// Links whose peer has said that it lacks a page, until when they are left alone.
    lacking: BTreeMap<LinkId, Time>,
    up_since: BTreeMap<LinkId, Time>,
}

impl Pages {
    /// A link is up.
    pub(super) fn on_link(&mut self, now: Time, link: LinkId) {
        self.up_since.insert(link, now);
    }

    /// A link is down: what was asked of it is asked elsewhere.
    pub(super) fn on_link_down(&mut self, link: LinkId) {
        self.asked.retain(|_, (asked, _)| *asked != link);
        self.lacking.remove(&link);
        self.up_since.remove(&link);
    }

    /// A page came from `link`, or word that it is not there (`here` false). Whether it was asked
    /// of this link.
    pub(super) fn on_page(&mut self, now: Time, link: LinkId, page: PageId, here: bool) -> bool {
        let wanted = self.asked.get(&page).is_some_and(|(asked, _)| *asked == link);
        if wanted {
            self.asked.remove(&page);
        }
        if wanted && !here {
            self.lacking.insert(link, now + LACKS_FOR);
        }
        wanted
    }

    /// Asks for what is missing and not asked for.
    pub(super) fn ask(&mut self, now: Time, store: &Store, links: &Links) {
        self.asked.retain(|_, (_, at)| now.since(*at) < PATIENCE);
        self.lacking.retain(|_, until| *until > now);
        let live = links.live();
        let mut room: Vec<(LinkId, usize)> = live
            .into_iter()
            .filter(|link| !self.lacking.contains_key(link))
            .map(|link| (link, self.asked.values().filter(|(asked, _)| *asked == link).count()))
            .filter(|(_, asked)| *asked < ASKED_PER_LINK_MAX)
            .collect();
        if room.is_empty() {
            return;
        }
        for page in store.missing_pages(self.asked.len() + ASKED_PER_LINK_MAX * room.len()) {
            if self.asked.contains_key(&page) {
                continue;
            }
            let least = room.iter_mut().min_by_key(|(_, asked)| *asked);
            let Some((link, asked)) = least.filter(|(_, asked)| *asked < ASKED_PER_LINK_MAX) else {
                return;
            };
            *asked += 1;
            self.asked.insert(page, (*link, now));
            links.send(*link, Channel::Content, Message::PageWanted(page).encode());
        }
    }

    /// Whether the member may be told of a link: its blocks can be verified, or its peer has no
    /// page to give now.
    pub(super) fn may_tell(&self, now: Time, link: LinkId, verifiable: bool) -> bool {
        let waited = self.up_since.get(&link).is_none_or(|since| now.since(*since) >= FIRST_WAIT);
        verifiable || waited || self.lacking.contains_key(&link)
    }
}
