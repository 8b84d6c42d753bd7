//! Making, judging and ending peerings (Bullet §4.2.3.2).
//!
//! A peering is asked for by the receiver and is one-way; two members that want blocks from each
//! other make two, over one link.

use super::limits::laggards;
use super::messages::{Entry, Message};
use super::{BulletPrime, Ctx, LinkClass, LinkId, Output, PeerId, PeerInfo};
use crate::membership::ransub::Sample;
use crate::summary::Exact;
use crate::time::{Duration, Time};

impl BulletPrime {
    // ---- making peerings ----

    /// RanSub delivered a sample: judge the number of peers, then look for better ones.
    pub(super) fn on_distribute(&mut self, ctx: &mut Ctx<'_>, sample: Sample<Entry>) {
        let me = self.setup.me.id;
        let members = sample.members.into_iter().filter(|entry| entry.info.id != me).collect();
        let sample = Sample { members, population: sample.population };
        self.grow_with(ctx, sample.population as usize);
        self.candidates.refresh(ctx.rng, sample, ctx.holdings.held());
        if self.config.peers_adapt && ctx.now.since(self.judged_at) >= self.config.judge_interval {
            self.judge_peers(ctx);
        }
        self.replace_useless_sender(ctx);
        self.seek_senders(ctx);
    }

    /// A small group over long paths is a full mesh at first. TCP recovers from a loss in proportion
    /// to the round trip: there, many thin connections fill an uplink and ten may not, and all is
    /// over before adaptation has found that out. Over short paths more peers only make each block
    /// take longer.
    ///
    /// A group that turns out to be larger is none any more: those that came first would else be
    /// full, and those that come later find nobody.
    fn grow_with(&mut self, ctx: &mut Ctx<'_>, population: usize) {
        if population > self.config.everybody_max {
            let initial = self.config.peers_initial;
            let was_small = self.sender_limit.return_to(initial);
            if self.receiver_limit.return_to(initial) || was_small {
                self.trim_peers(ctx);
            }
        } else if self.config.peers_adapt && self.has_long_paths(ctx) {
            self.sender_limit.restart_from(population);
            self.receiver_limit.restart_from(population);
        }
    }

    /// Over long paths the source, which cannot know yet how large the group becomes, takes as many
    /// children as a small one has.
    pub(super) fn widen_push(&mut self, ctx: &Ctx<'_>) {
        if !self.config.peers_adapt || !self.has_long_paths(ctx) {
            return;
        }
        if let Some(push) = &mut self.push {
            self.fan_out.restart_from(self.config.everybody_max);
            push.set_fan_out(self.fan_out.max());
            self.tree.set_root_children_max(self.fan_out.max().max(push.children()));
        }
    }

    /// Whether the mean round trip to linked members is long.
    pub(super) fn has_long_paths(&self, ctx: &Ctx<'_>) -> bool {
        let rtts = self.directory.iter().filter_map(|(link, _)| ctx.links.measured(link).rtt);
        let (sum, count) =
            rtts.fold((0.0, 0.0), |(sum, n), rtt| (sum + rtt.as_secs_f64(), n + 1.0));
        sum > self.config.long_path.as_secs_f64() * count
    }

    /// Asks candidates to be senders, as many at once as the limit allows (Bullet §4.2.2.1).
    pub(super) fn seek_senders(&mut self, ctx: &mut Ctx<'_>) {
        if self.done_at.is_some() || self.leaving {
            return;
        }
        while self.download.active_count() + self.candidates.asked() < self.sender_limit.max() {
            let (directory, download) = (&self.directory, &self.download);
            let fits = |peer: &PeerInfo| {
                !directory.link(&peer.id).is_some_and(|link| download.is_active(link))
            };
            let Some((peer, _)) = self.candidates.take(ctx.now, fits) else { return };
            self.ask_candidate(ctx, peer);
        }
    }

    fn ask_candidate(&mut self, ctx: &mut Ctx<'_>, peer: PeerInfo) {
        if let Some(link) = self.directory.link(&peer.id) {
            ctx.send(link, Message::Peer.encode());
        } else if peer.contact.reachable {
            ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable });
        } else {
            let from = self.setup.me.clone();
            self.on_reverse(ctx, peer.id, from);
        }
    }

    /// A member that accepts no connections is asked, along the tree, to dial.
    pub(super) fn on_reverse(&mut self, ctx: &mut Ctx<'_>, target: PeerId, from: PeerInfo) {
        if target == self.setup.me.id {
            if self.directory.link(&from.id).is_none() && from.contact.reachable {
                ctx.out.push(Output::Connect { peer: from, class: LinkClass::Reliable });
            }
            return;
        }
        // Down where its name came up, else up; the root drops what it cannot place.
        let next = self.ransub.route(&target).or_else(|| self.tree.parent());
        if let Some(link) = next
            && from.contact.reachable
        {
            ctx.send(link, Message::Reverse { target, from }.encode());
        }
    }

    pub(super) fn on_peer(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let full = self.upload.receivers().len() >= self.receiver_limit.max();
        if !self.is_peer() || (full && !self.upload.receivers().contains_key(&link)) {
            return ctx.send(link, Message::PeerRefuse.encode());
        }
        self.upload.accept(ctx, link);
    }

    pub(super) fn on_peer_accept(&mut self, ctx: &mut Ctx<'_>, link: LinkId, have: &Exact) {
        if let Some(peer) = self.directory.peer(link) {
            self.candidates.on_answer(&peer.id);
        }
        let room = self.download.active_count() < self.senders_max();
        let available = have.bitmap(ctx.holdings.blocks());
        if self.download.is_active(link) {
            return;
        }
        match available {
            Some(available) if room && self.done_at.is_none() => {
                let peer = self.directory.peer(link);
                let is_source = peer.is_some_and(|peer| peer.id == self.setup.source);
                self.download.add_sender(ctx.now, link, available, is_source);
                self.download.fill(ctx, &mut self.stats, link);
            }
            available => {
                self.stats.messages_bad += u64::from(available.is_none());
                ctx.send(link, Message::PeerLeave.encode());
            }
        }
    }

    pub(super) fn on_peer_refuse(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if let Some(peer) = self.directory.peer(link) {
            self.candidates.on_refused(ctx.now, &peer.id);
            self.seek_senders(ctx);
        }
    }

    /// Most senders this member ever has.
    pub(super) fn senders_max(&self) -> usize {
        self.config.senders_max.clamp(1, self.config.peers_max)
    }

    // ---- ending peerings ----

    /// A sender is gone: what it owed is asked of others at once.
    pub(super) fn lose_sender(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if !self.download.is_sender(link) {
            return;
        }
        let owed = self.download.remove_sender(link);
        self.stats.rerequests_lost += owed as u64;
        if owed > 0 {
            self.download.fill_all(ctx, &mut self.stats);
        }
    }

    /// Ends a peering in good order: nothing more is asked, what is on its way still comes, and
    /// the sender gives the rest back.
    fn leave_sender(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        ctx.send(link, Message::PeerLeave.encode());
        self.retire_sender(ctx, link);
    }

    /// A peering has ended: see [`BulletPrime::leave_sender`].
    pub(super) fn retire_sender(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        self.download.retire_sender(link);
        self.seek_senders(ctx);
    }

    fn drop_receiver(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if self.upload.remove(ctx, link) {
            ctx.send(link, Message::PeerDrop.encode());
        }
    }

    // ---- judging peers ----

    /// ManageSenders and its counterpart for receivers (Fig. 5), then the 1.5 σ rule.
    fn judge_peers(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now;
        let incoming = self.incoming_rate(now);
        let outgoing: f64 = self.upload.receivers().values().map(|r| r.judged.rate(now)).sum();
        if self.done_at.is_none() {
            self.sender_limit.update(self.download.active_count(), incoming);
            if self.download.is_behind() {
                self.sender_limit.raise();
            }
        }
        self.receiver_limit.update(self.upload.receivers().len(), outgoing);
        self.judge_fan_out(ctx);
        self.trim_peers(ctx);
        self.prune_peers(ctx);
    }

    /// Ends the peerings that are beyond the limits: with the slowest senders, and with the receivers
    /// that have the least share of what comes in to them from here.
    fn trim_peers(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now;
        while self.download.active_count() > self.sender_limit.max() {
            let senders = self.download.active();
            let slowest =
                senders.min_by(|a, b| a.1.judged.rate(now).total_cmp(&b.1.judged.rate(now)));
            let Some(link) = slowest.map(|(link, _)| *link) else { break };
            self.leave_sender(ctx, link);
        }
        let excess = self.upload.receivers().len().saturating_sub(self.receiver_limit.max());
        let mut ratios = self.receiver_ratios(now, Duration::ZERO);
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        let reported: Vec<LinkId> = ratios.into_iter().map(|(link, _)| link).collect();
        for link in reported.into_iter().take(excess) {
            self.drop_receiver(ctx, link);
        }
    }

    /// The source's fan-out, the number of children it pushes to, follows its measured uplink by
    /// the same rule: lossy or slow paths to few children must not leave it idle.
    fn judge_fan_out(&mut self, ctx: &mut Ctx<'_>) {
        let Some(push) = &mut self.push else { return };
        let Some(pushed) = push.judge(ctx.now) else { return };
        self.fan_out.update(push.fan_out(), pushed);
        let max = self.fan_out.max();
        push.set_fan_out(max);
        let children = push.children();
        self.tree.set_root_children_max(max.max(children));
        self.pump(ctx);
        if children < max {
            self.invite_child(ctx);
        }
    }

    /// Whoever RanSub delivered and is no child yet is as good as any.
    fn invite_child(&mut self, ctx: &mut Ctx<'_>) {
        let children: Vec<LinkId> = self.tree.children().collect();
        let directory = &self.directory;
        let is_child =
            |peer: &PeerInfo| directory.link(&peer.id).is_some_and(|link| children.contains(&link));
        if let Some((peer, _)) = self.candidates.take(ctx.now, |peer| !is_child(peer)) {
            self.candidates.on_answer(&peer.id);
            self.with_tree(ctx, |tree, ctx| tree.invite(ctx, peer));
        }
    }

    /// Drops peers more than 1.5 σ below the mean: senders by what they deliver, receivers by the
    /// share of their incoming rate that they have from here. A new span begins.
    pub(super) fn prune_peers(&mut self, ctx: &mut Ctx<'_>) {
        let (now, sigma) = (ctx.now, self.config.prune_sigma);
        let interval = self.config.judge_interval;
        let judged: Vec<(LinkId, f64)> = self
            .download
            .active()
            .filter(|(_, sender)| now.since(sender.since) >= interval)
            .map(|(link, sender)| (*link, sender.judged.rate(now)))
            .collect();
        let spare = self.download.active_count().saturating_sub(self.config.peers_min);
        for link in below(&judged, sigma, spare) {
            self.leave_sender(ctx, link);
        }
        let ratios = self.receiver_ratios(now, interval);
        let spare = self.upload.receivers().len().saturating_sub(self.config.peers_min);
        for link in below(&ratios, sigma, spare) {
            self.drop_receiver(ctx, link);
        }
        self.begin_span(ctx);
    }

    fn begin_span(&mut self, ctx: &mut Ctx<'_>) {
        self.judged_at = ctx.now;
        let incoming = (self.incoming_rate(ctx.now) / 1_000.0) as u32;
        for (link, sender) in self.download.senders_mut() {
            sender.judged.close(ctx.now);
            ctx.out.push(Output::Message {
                link: *link,
                bytes: Message::Report { incoming }.encode(),
            });
        }
        for receiver in self.upload.receivers_mut().values_mut() {
            receiver.judged.close(ctx.now);
        }
    }

    fn incoming_rate(&self, now: Time) -> f64 {
        self.download.senders().values().map(|sender| sender.judged.rate(now)).sum()
    }

    /// For each receiver of at least this age that has reported: the share of its incoming rate
    /// that it has from here.
    fn receiver_ratios(&self, now: Time, age: Duration) -> Vec<(LinkId, f64)> {
        let receivers = self.upload.receivers().iter();
        receivers
            .filter(|(_, receiver)| now.since(receiver.since) >= age)
            .filter_map(|(link, receiver)| {
                let incoming = receiver.incoming?;
                Some((*link, receiver.judged.rate(now) / incoming.max(1.0)))
            })
            .collect()
    }

    /// A full set of senders that have nothing we lack would stay for ever, all being equal: one
    /// makes room when a candidate promises more.
    fn replace_useless_sender(&mut self, ctx: &mut Ctx<'_>) {
        let senders = self.download.active_count();
        if self.done_at.is_some()
            || senders < self.sender_limit.max()
            || self.candidates.best_promise() < 1.0
        {
            return;
        }
        let interval = self.config.judge_interval;
        let held = ctx.holdings.held();
        let useless = self
            .download
            .active()
            .filter(|(_, sender)| ctx.now.since(sender.since) >= interval)
            .map(|(link, _)| *link)
            .find(|link| self.download.useful(*link, held) == 0);
        if let Some(link) = useless {
            self.leave_sender(ctx, link);
        }
    }
}

/// The laggards among `values`, at most `spare` of them.
fn below(values: &[(LinkId, f64)], sigma: f64, spare: usize) -> Vec<LinkId> {
    let rates: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    laggards(&rates, sigma).into_iter().take(spare).map(|at| values[at].0).collect()
}
