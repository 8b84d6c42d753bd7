//! Being a parent: whom to take, where to send the others, what to tell one's children.

use super::{Ctx, Lineage, LinkId, Message, Out, PeerId, PeerInfo, REDIRECT_MAX, Rng};
use super::{SUCCESSORS_MAX, Tree, shuffle};

impl Tree {
    pub(super) fn on_join(&mut self, ctx: &mut Ctx<'_>, link: LinkId, reign_seen: u64) {
        let Some(peer) = ctx.directory.peer(link).cloned() else { return };
        let on_path = self.lineage.path.contains(&peer.id.short());
        if !self.is_in_place() || on_path || self.parent() == Some(link) {
            return ctx.out.push(Out::Send(link, Message::Busy));
        }
        let max = if self.is_root() { self.root_children_max } else { self.config.children_max };
        if self.children.len() >= max && !self.children.contains_key(&link) {
            let to = self.redirect(ctx.rng, &peer.id);
            return ctx.out.push(Out::Send(link, Message::Redirect { to }));
        }
        let is_new = self.children.insert(link, peer).is_none();
        let raised = self.is_root() && reign_seen > self.lineage.reign;
        if raised {
            self.lineage.reign = reign_seen + 1;
        }
        let renamed = self.name_successors();
        ctx.out.push(Out::Send(link, Message::Welcome(self.lineage_for_children())));
        if is_new {
            ctx.out.push(Out::ChildJoined(link));
        }
        if raised || renamed {
            self.tell_children(ctx);
        }
    }

    pub(super) fn redirect(&self, rng: &mut Rng, joiner: &PeerId) -> Vec<PeerInfo> {
        let mut to: Vec<PeerInfo> = self
            .children
            .values()
            .filter(|child| child.contact.reachable && child.id != *joiner)
            .cloned()
            .collect();
        shuffle(rng, &mut to);
        to.truncate(REDIRECT_MAX);
        to
    }

    pub(super) fn drop_child(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if self.children.remove(&link).is_some() {
            ctx.out.push(Out::ChildLeft(link));
            if self.name_successors() {
                self.tell_children(ctx);
            }
        }
    }

    /// At the root: the successors anew; whether they changed.
    pub(super) fn name_successors(&mut self) -> bool {
        if !self.is_root() {
            return false;
        }
        let reachable = self.children.values().filter(|child| child.contact.reachable);
        let successors: Vec<PeerInfo> = reachable.take(SUCCESSORS_MAX).cloned().collect();
        let changed = successors != self.lineage.successors;
        self.lineage.successors = successors;
        changed
    }

    pub(super) fn lineage_for_children(&self) -> Lineage {
        let mut lineage = self.lineage.clone();
        lineage.path.push(self.me.id.short());
        lineage
    }

    pub(super) fn tell_children(&self, ctx: &mut Ctx<'_>) {
        let lineage = self.lineage_for_children();
        for link in self.children.keys() {
            ctx.out.push(Out::Send(*link, Message::Lineage(lineage.clone())));
        }
    }
}
