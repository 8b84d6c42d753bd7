//! Having a parent, losing it, and looking for one.

use super::{Ctx, Lineage, LinkId, Message, Out, PLACES_MAX, PeerInfo, REDIRECT_MAX, RngExt};
use super::{State, Time, Tree};

impl Tree {
    pub(super) fn is_asking(&self, link: LinkId) -> bool {
        matches!(&self.state, State::Joining { asked: Some(asked), .. } if *asked == link)
    }

    pub(super) fn on_welcome(&mut self, ctx: &mut Ctx<'_>, link: LinkId, lineage: Lineage) {
        let in_loop = lineage.path.contains(&self.me.id.short());
        if !self.is_asking(link) || !lineage.is_valid() || in_loop {
            if self.parent() != Some(link) {
                ctx.out.push(Out::Send(link, Message::Part));
            }
            if self.is_asking(link) {
                self.try_next(ctx);
            }
            return;
        }
        self.state = State::Attached { parent: link };
        self.was_attached = true;
        self.rounds = 0;
        self.takeover_at = None;
        self.places.clear();
        self.lineage = lineage;
        ctx.out.push(Out::Attached(link));
        self.tell_children(ctx);
    }

    pub(super) fn on_lineage(&mut self, ctx: &mut Ctx<'_>, lineage: Lineage) {
        if !lineage.is_valid() || lineage.path.contains(&self.me.id.short()) {
            if let Some(parent) = self.parent() {
                ctx.out.push(Out::Send(parent, Message::Part));
            }
            return self.lose_parent(ctx, Vec::new());
        }
        if lineage != self.lineage {
            self.lineage = lineage;
            self.tell_children(ctx);
        }
    }

    pub(super) fn on_parent_leaves(&mut self, ctx: &mut Ctx<'_>, rejoin: Vec<PeerInfo>) {
        let parent = self.parent().and_then(|link| ctx.directory.peer(link)).map(|peer| peer.id);
        let root_leaves = parent == Some(self.lineage.root.id);
        let heir = self.lineage.successors.first().map(|peer| peer.id);
        if root_leaves && heir == Some(self.me.id) {
            return self.rule(ctx, self.lineage.reign + 1);
        }
        if root_leaves && let Some(heir) = self.lineage.successors.first().cloned() {
            // The old root is no place to rejoin.
            self.lineage.root = heir;
        }
        self.lose_parent(ctx, rejoin);
    }

    pub(super) fn lose_parent(&mut self, ctx: &mut Ctx<'_>, rejoin: Vec<PeerInfo>) {
        let rank = self.lineage.successors.iter().position(|peer| peer.id == self.me.id);
        let patience = match rank {
            Some(rank) => self.config.takeover_first + self.config.takeover_step * rank as u32,
            None => self.config.takeover_step * (7 + ctx.rng.random_range(0..4)),
        };
        self.takeover_at = Some(ctx.now + patience);
        self.rounds = 0;
        self.state = State::Idle;
        ctx.out.push(Out::Detached);
        self.fill_places();
        for place in rejoin.into_iter().take(REDIRECT_MAX).rev() {
            self.add_place_first(place);
        }
        self.try_next(ctx);
    }

    pub(super) fn on_invite(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let from_root =
            ctx.directory.peer(link).is_some_and(|peer| peer.id == self.lineage.root.id);
        let State::Attached { parent } = self.state else { return };
        if !from_root || parent == link {
            return;
        }
        ctx.out.push(Out::Send(parent, Message::Part));
        ctx.out.push(Out::Detached);
        self.ask(ctx, self.lineage.root.clone());
    }

    pub(super) fn fill_places(&mut self) {
        self.places.clear();
        let known = if self.was_attached { vec![self.lineage.root.clone()] } else { Vec::new() };
        let successors = self.lineage.successors.clone();
        for place in known.into_iter().chain(successors).chain(self.bootstrap.clone()) {
            if !self.places.iter().any(|known| known.id == place.id) {
                self.places.push_back(place);
            }
        }
    }

    pub(super) fn add_place_first(&mut self, place: PeerInfo) {
        if place.contact.is_valid() {
            self.places.retain(|known| known.id != place.id);
            self.places.push_front(place);
            self.places.truncate(PLACES_MAX);
        }
    }

    pub(super) fn try_next(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(place) = self.places.pop_front() {
            let usable = place.contact.reachable || ctx.directory.link(&place.id).is_some();
            if place.id != self.me.id && usable && !self.children.values().any(|c| c.id == place.id)
            {
                return self.ask(ctx, place);
            }
        }
        self.rounds += 1;
        if self.was_attached && self.takeover_at.is_some_and(|at| ctx.now >= at) {
            return self.rule(ctx, self.lineage.reign + 1);
        }
        if !self.was_attached && self.rounds >= self.config.rounds_max {
            self.state = State::Idle;
            return ctx.out.push(Out::Unreachable);
        }
        let pause = self.config.retry_pause * (1 << self.rounds.min(4));
        let pause = pause.mul_f64(ctx.rng.random_range(0.5..1.0));
        // A successor does not sleep past its hour.
        let until = (ctx.now + pause).min(self.takeover_at.unwrap_or(Time::FAR));
        self.state = State::Pausing { until: until.max(ctx.now + self.config.retry_pause / 4) };
    }

    pub(super) fn ask(&mut self, ctx: &mut Ctx<'_>, target: PeerInfo) {
        let asked = ctx.directory.link(&target.id);
        match asked {
            Some(link) => {
                let reign_seen = self.lineage.reign;
                ctx.out.push(Out::Send(link, Message::Join { reign_seen }));
            }
            None => ctx.out.push(Out::Connect(target.clone())),
        }
        self.state = State::Joining { target, asked, until: ctx.now + self.config.join_timeout };
    }
}
