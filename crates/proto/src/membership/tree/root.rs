//! Being the root: ruling, looking for the source and for other roots, stepping down.

use super::{Ctx, LinkId, Message, Out, PeerInfo, RngExt, State, Tree};

impl Tree {
    pub(super) fn is_source(&self) -> bool {
        self.me.id == self.source
    }

    pub(super) fn rule(&mut self, ctx: &mut Ctx<'_>, reign: u64) {
        self.state = State::Root;
        self.was_attached = true;
        self.takeover_at = None;
        self.lineage.reign = reign;
        self.lineage.root = self.me.clone();
        self.lineage.path.clear();
        self.name_successors();
        let looks = !self.is_source() || !self.bootstrap.is_empty();
        self.probe_at = looks.then_some(ctx.now + self.config.probe_interval / 4);
        ctx.out.push(Out::BecameRoot);
        self.tell_children(ctx);
    }

    /// Looks for the source, or for another root, at one place.
    pub(super) fn probe(&mut self, ctx: &mut Ctx<'_>) {
        self.probe_at = None;
        if !self.is_root() {
            return;
        }
        let mut places: Vec<&PeerInfo> = self.bootstrap.iter().collect();
        places.extend(ctx.directory.iter().map(|(_, peer)| peer));
        places.retain(|peer| peer.id != self.me.id);
        let source = places.iter().position(|peer| peer.id == self.source);
        let pick = match source {
            Some(source) if ctx.rng.random_bool(0.5) => Some(source),
            _ if places.is_empty() => None,
            _ => Some(ctx.rng.random_range(0..places.len())),
        };
        if let Some(place) = pick.map(|pick| places[pick].clone()) {
            match ctx.directory.link(&place.id) {
                Some(link) => self.claim(ctx, link),
                None => {
                    self.probing = Some(place.id);
                    ctx.out.push(Out::Connect(place));
                }
            }
        }
        self.probe_at = Some(ctx.now + self.config.probe_interval);
    }

    pub(super) fn claim(&self, ctx: &mut Ctx<'_>, link: LinkId) {
        let (reign, root) = (self.lineage.reign, self.lineage.root.clone());
        ctx.out.push(Out::Send(link, Message::Claim { reign, root }));
    }

    pub(super) fn on_claim(&mut self, ctx: &mut Ctx<'_>, link: LinkId, reign: u64, root: PeerInfo) {
        if !root.contact.is_valid() || root.id == self.me.id || !self.is_in_place() {
            return;
        }
        if self.is_root() && self.is_source() && reign >= self.lineage.reign {
            self.lineage.reign = reign + 1;
            self.tell_children(ctx);
        }
        let theirs = (root.id == self.source, reign, root.id);
        let ours = (self.lineage.root.id == self.source, self.lineage.reign, self.lineage.root.id);
        match &self.state {
            _ if root.id == self.lineage.root.id => {}
            _ if ours > theirs => self.claim(ctx, link),
            State::Attached { parent } => {
                ctx.out.push(Out::Send(*parent, Message::Claim { reign, root }));
            }
            _ => self.step_down(ctx, root),
        }
    }

    pub(super) fn step_down(&mut self, ctx: &mut Ctx<'_>, root: PeerInfo) {
        self.probe_at = None;
        self.takeover_at = Some(ctx.now + self.config.takeover_step);
        self.rounds = 0;
        ctx.out.push(Out::Detached);
        self.fill_places();
        self.ask(ctx, root);
    }
}
