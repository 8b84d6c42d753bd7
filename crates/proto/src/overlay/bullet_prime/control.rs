//! A member's links, its place in the control tree, RanSub, and what it reports to the root.

use super::messages::{Entry, Message};
use super::{BulletPrime, Ctx, LinkId, OUTCOME_RETRY, OUTCOMES_MAX, PeerId, PeerInfo};
use crate::id::LinkClass;
use crate::membership::ransub;
use crate::membership::tree::{self, Tree};
use crate::overlay::{FailReason, Outcome, Output};
use crate::summary::Exact;

impl BulletPrime {
    // ---- links ----

    pub(super) fn on_link_up(&mut self, ctx: &mut Ctx<'_>, link: LinkId, peer: PeerInfo) {
        self.directory.add(link, peer.clone());
        self.unused.insert(link, ctx.now);
        self.with_tree(ctx, |tree, ctx| tree.handle_link_up(ctx, link, &peer));
        if self.candidates.is_asked(&peer.id) {
            ctx.send(link, Message::Peer.encode());
        }
        if self.done_at.is_some() && peer.id == self.tree.lineage().root.id {
            self.report_outcome(ctx);
        }
    }

    pub(super) fn on_link_down(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let peer = self.directory.remove(link);
        self.unused.remove(&link);
        if let Some(push) = &mut self.push {
            push.on_gone(link);
        }
        self.upload.remove(ctx, link);
        self.lose_sender(ctx, link);
        if let Some(peer) = peer {
            self.candidates.on_answer(&peer.id);
        }
        self.with_tree(ctx, |tree, ctx| tree.handle_link_down(ctx, link));
        self.seek_senders(ctx);
    }

    pub(super) fn on_connect_failed(&mut self, ctx: &mut Ctx<'_>, peer: PeerId) {
        self.with_tree(ctx, |tree, ctx| tree.handle_connect_failed(ctx, &peer));
        if self.candidates.on_refused(ctx.now, &peer) {
            self.seek_senders(ctx);
        }
    }

    /// Closes links that nothing has used for a while.
    pub(super) fn close_unused(&mut self, ctx: &mut Ctx<'_>) {
        for (link, peer) in self.directory.iter() {
            let used = self.tree.uses(link)
                || self.download.is_sender(link)
                || self.upload.receivers().contains_key(&link)
                || self.candidates.is_asked(&peer.id);
            match self.unused.get(&link) {
                _ if used => {
                    self.unused.remove(&link);
                }
                None => {
                    self.unused.insert(link, ctx.now);
                }
                Some(since) if ctx.now.since(*since) > self.config.link_idle => {
                    ctx.out.push(Output::Disconnect { link });
                }
                Some(_) => {}
            }
        }
    }

    // ---- control tree and RanSub ----

    pub(super) fn with_tree(
        &mut self,
        ctx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Tree, &mut tree::Ctx<'_>),
    ) {
        let mut out = Vec::new();
        let mut tree_ctx =
            tree::Ctx { now: ctx.now, rng: ctx.rng, directory: &self.directory, out: &mut out };
        act(&mut self.tree, &mut tree_ctx);
        for out in out {
            self.on_tree(ctx, out);
        }
        self.stats.depth_now = self.tree.depth();
    }

    pub(super) fn on_tree(&mut self, ctx: &mut Ctx<'_>, out: tree::Out) {
        match out {
            tree::Out::Connect(peer) => {
                ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable });
            }
            tree::Out::Send(link, message) => ctx.send(link, Message::Tree(message).encode()),
            tree::Out::Attached(link) => {
                self.ransub.attach(link);
                let parent = self.directory.peer(link).map(|peer| peer.id);
                if parent == Some(self.setup.source) {
                    ctx.send(
                        link,
                        Message::Ready { have: Exact::of(ctx.holdings.held()) }.encode(),
                    );
                }
                self.report_outcome(ctx);
            }
            tree::Out::Detached => self.ransub.detach(),
            tree::Out::BecameRoot => self.ransub.become_root(ctx.now),
            tree::Out::ChildJoined(link) => {
                let own = self.own_entry(ctx.holdings);
                let mut out = Vec::new();
                self.ransub.child_joined(link, ctx.rng, own.as_ref(), &mut out);
                self.on_ransub(ctx, out);
            }
            tree::Out::ChildLeft(link) => {
                self.ransub.child_left(link);
                if let Some(push) = &mut self.push {
                    push.on_gone(link);
                    self.pump(ctx);
                }
            }
            tree::Out::Unreachable if self.done_at.is_none() => {
                ctx.out.push(Output::Failed { reason: FailReason::Unreachable });
            }
            tree::Out::Unreachable => {}
        }
    }

    pub(super) fn on_ransub(&mut self, ctx: &mut Ctx<'_>, out: Vec<ransub::Out<Entry>>) {
        for out in out {
            match out {
                ransub::Out::Send(link, message) => {
                    ctx.send(link, Message::RanSub(message).encode());
                }
                ransub::Out::Delivered(sample) => self.on_distribute(ctx, sample),
            }
        }
    }

    // ---- outcome ----

    /// Tells the root that everything is here, once it and we can be told so.
    pub(super) fn report_outcome(&mut self, ctx: &mut Ctx<'_>) {
        let Some(done_at) = self.done_at else { return };
        let root = self.tree.lineage().root.clone();
        if self.setup.is_source() || !self.tree.is_in_place() || self.noted_by == Some(root.id) {
            self.outcome_at = None;
            return;
        }
        if self.tree.is_root() {
            return;
        }
        self.outcome_at = Some(ctx.now + OUTCOME_RETRY);
        let Some(link) = self.directory.link(&root.id) else {
            return ctx.out.push(Output::Connect { peer: root, class: LinkClass::Reliable });
        };
        let outcome = Outcome {
            peer: self.setup.me.id,
            elapsed_ms: done_at.since(self.started).as_millis() as u64,
            bytes_from_source: self.stats.bytes_from_source,
            bytes_from_peers: self.stats.bytes_from_peers,
            bytes_before: self.bytes_before,
        };
        ctx.send(link, Message::Outcome(outcome).encode());
    }

    pub(super) fn on_outcome(&mut self, ctx: &mut Ctx<'_>, link: LinkId, outcome: Outcome) {
        // A peer speaks for itself only.
        if self.directory.peer(link).is_none_or(|peer| peer.id != outcome.peer) {
            self.stats.messages_bad += 1;
            return;
        }
        if self.tree.is_root() {
            ctx.send(link, Message::OutcomeNoted.encode());
            if self.outcomes.len() < OUTCOMES_MAX && self.outcomes.insert(outcome.peer) {
                ctx.out.push(Output::Outcome(outcome));
            }
        }
    }
}
