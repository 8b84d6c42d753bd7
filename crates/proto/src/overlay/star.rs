//! Star: the source sends everything to everyone. The unicast baseline, and the smallest member.
//!
//! A receiver links to the source and says which blocks it lacks; the source offers them in
//! ascending order whenever the link has room, and every receiver that has all of them reports
//! its outcome. Nothing is fetched from other receivers, so the time is at best `N·F/u_s`.

use super::{Command, Ctx, FailReason, Input, Outcome, Output, Overlay, Setup, Stats};
use crate::id::{BlockIndex, LinkClass, LinkId, PeerId, PeerInfo};
use crate::overlay::Holdings;
use crate::summary::Bitmap;
use crate::time::{Duration, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a receiver waits before it dials the source again.
const REDIAL: Duration = Duration::from_secs(1);
/// How many dials in a row fail before a receiver gives up.
const DIALS_MAX: u32 = 10;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Message {
    /// Receiver to source: the blocks it lacks.
    Want { blocks: u32, missing: Vec<u8> },
    /// Receiver to source: it has everything.
    Outcome(Outcome),
}

struct Receiver {
    missing: Bitmap,
    next: BlockIndex,
}

/// A member of a star. See [the module](self).
pub struct Star {
    setup: Setup,
    started: Time,
    bytes_before: u64,
    receivers: BTreeMap<LinkId, Receiver>,
    source_link: Option<LinkId>,
    redial_at: Option<Time>,
    dials: u32,
    done: bool,
    stats: Stats,
}

impl Star {
    /// A member that has not started.
    pub fn new(setup: Setup) -> Star {
        Star {
            setup,
            started: Time::ZERO,
            bytes_before: 0,
            receivers: BTreeMap::new(),
            source_link: None,
            redial_at: None,
            dials: 0,
            done: false,
            stats: Stats::default(),
        }
    }

    fn source_info(&self) -> Option<PeerInfo> {
        self.setup.bootstrap.iter().find(|peer| peer.id == self.setup.source).cloned()
    }

    fn dial(&mut self, ctx: &mut Ctx<'_>) {
        self.redial_at = None;
        match self.source_info() {
            Some(peer) => ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable }),
            None => ctx.out.push(Output::Failed { reason: FailReason::Unreachable }),
        }
    }

    fn on_start(&mut self, ctx: &mut Ctx<'_>) {
        self.started = ctx.now;
        let held = ctx.holdings.held();
        self.bytes_before = held.iter().map(|b| u64::from(ctx.holdings.block_len(b))).sum();
        if !self.setup.is_source() {
            self.dial(ctx);
        }
    }

    fn on_link_up(&mut self, ctx: &mut Ctx<'_>, link: LinkId, peer: PeerId) {
        if peer != self.setup.source {
            return;
        }
        self.source_link = Some(link);
        self.dials = 0;
        let mut missing = Bitmap::full(ctx.holdings.blocks());
        ctx.holdings.held().iter().for_each(|block| {
            missing.remove(block);
        });
        let want = Message::Want { blocks: missing.len(), missing: missing.to_bytes() };
        ctx.send(link, encode(&want));
        self.finish_if_complete(ctx);
    }

    fn on_link_lost(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        self.receivers.remove(&link);
        if self.source_link == Some(link) {
            self.source_link = None;
            self.redial_at = Some(ctx.now + REDIAL);
        }
    }

    fn on_message(&mut self, ctx: &mut Ctx<'_>, link: LinkId, bytes: &[u8]) {
        let blocks_here = ctx.holdings.blocks();
        match postcard::from_bytes(bytes) {
            Ok(Message::Want { blocks, missing }) if blocks == blocks_here => {
                if let Some(missing) = Bitmap::from_bytes(blocks, &missing) {
                    self.receivers.insert(link, Receiver { missing, next: 0 });
                    return self.serve(ctx, link);
                }
                self.stats.messages_bad += 1;
            }
            Ok(Message::Outcome(outcome)) => ctx.out.push(Output::Outcome(outcome)),
            _ => self.stats.messages_bad += 1,
        }
    }

    fn serve(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(receiver) = self.receivers.get_mut(&link) else { return };
        while receiver.next < receiver.missing.len() {
            let block = receiver.next;
            if receiver.missing.contains(block) && ctx.holdings.held().contains(block) {
                if !ctx.try_send_block(link, block, Vec::new()) {
                    return;
                }
                self.stats.blocks_sent += 1;
            }
            receiver.next += 1;
        }
    }

    fn on_block(&mut self, ctx: &mut Ctx<'_>, block: BlockIndex, duplicate: bool) {
        if duplicate {
            self.stats.duplicates += 1;
            return;
        }
        self.stats.blocks_received += 1;
        self.stats.bytes_from_source += u64::from(ctx.holdings.block_len(block));
        self.finish_if_complete(ctx);
    }

    fn finish_if_complete(&mut self, ctx: &mut Ctx<'_>) {
        let Some(link) = self.source_link else { return };
        if self.done || !ctx.holdings.is_complete() {
            return;
        }
        self.done = true;
        let outcome = Outcome {
            peer: self.setup.me.id,
            elapsed_ms: ctx.now.since(self.started).as_millis() as u64,
            bytes_from_source: self.stats.bytes_from_source,
            bytes_from_peers: 0,
            bytes_before: self.bytes_before,
        };
        ctx.send(link, encode(&Message::Outcome(outcome)));
        ctx.out.push(Output::Done);
    }

    fn on_connect_failed(&mut self, ctx: &mut Ctx<'_>) {
        self.dials += 1;
        if self.dials >= DIALS_MAX {
            ctx.out.push(Output::Failed { reason: FailReason::Unreachable });
        } else {
            self.redial_at = Some(ctx.now + REDIAL);
        }
    }
}

impl Overlay for Star {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        match input {
            Input::Start => self.on_start(ctx),
            Input::LinkUp { link, peer, .. } => self.on_link_up(ctx, link, peer),
            Input::LinkDown { link, .. } => self.on_link_lost(ctx, link),
            Input::ConnectFailed { .. } => self.on_connect_failed(ctx),
            Input::Message { link, bytes } => self.on_message(ctx, link, &bytes),
            Input::Block { block, duplicate, .. } => self.on_block(ctx, block, duplicate),
            Input::BadBlock { link, corrupt, .. } => {
                self.stats.corrupt += u64::from(corrupt);
                // Ask anew for everything missing: the link is made again after it is down.
                ctx.out.push(Output::Disconnect { link });
            }
            Input::Room { link } => self.serve(ctx, link),
            Input::Produced { .. } => {
                let links: Vec<LinkId> = self.receivers.keys().copied().collect();
                links.into_iter().for_each(|link| self.serve(ctx, link));
            }
            Input::Deadline if self.redial_at.is_some_and(|at| ctx.now >= at) => self.dial(ctx),
            Input::Command(Command::Leave) => ctx.out.push(Output::Left),
            Input::Deadline | Input::Learned | Input::Evicted { .. } => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.redial_at
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn check_invariants(&self, holdings: &Holdings) -> Result<(), String> {
        if self.done && !holdings.is_complete() {
            return Err("done before every block is held".into());
        }
        Ok(())
    }

    fn contacts(&self) -> Vec<PeerInfo> {
        self.source_info().into_iter().collect()
    }
}

fn encode(message: &Message) -> Vec<u8> {
    postcard::to_stdvec(message).unwrap_or_default()
}
