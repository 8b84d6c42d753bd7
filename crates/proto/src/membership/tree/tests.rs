use super::*;
use crate::id::Contact;
use crate::random::stream;

/// Members of one tree with instant links and messages; links are numbered by the far member.
struct Village {
    nodes: Vec<Option<Node>>,
    now: Time,
    rng: Rng,
    queue: VecDeque<(usize, Step)>,
    unreachable: Vec<usize>,
}

struct Node {
    tree: Tree,
    directory: Directory,
}

enum Step {
    LinkUp(usize),
    LinkDown(usize),
    ConnectFailed(usize),
    Message(usize, Message),
}

fn info(index: usize) -> PeerInfo {
    let contact = Contact { addresses: vec![index as u8], reachable: true };
    PeerInfo { id: PeerId::of_name(&index.to_string()), contact }
}

fn link(index: usize) -> LinkId {
    LinkId(index as u32)
}

impl Village {
    /// The source is member 0.
    fn new(members: usize, seed: u64) -> Village {
        let mut village = Village {
            nodes: (0..members).map(|_| None).collect(),
            now: Time::ZERO,
            rng: stream(seed, "village", "tree"),
            queue: VecDeque::new(),
            unreachable: Vec::new(),
        };
        (0..members).for_each(|index| village.start(index, &[0]));
        village
    }

    fn start(&mut self, index: usize, bootstrap: &[usize]) {
        let places = bootstrap.iter().filter(|&&at| at != index).map(|&at| info(at)).collect();
        let config = Config { children_max: 3, root_children_max: 3, ..Config::default() };
        let tree = Tree::new(config, info(index), info(0).id, places);
        self.nodes[index] = Some(Node { tree, directory: Directory::default() });
        self.with(index, |tree, ctx| tree.start(ctx));
        self.settle();
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Tree, &mut Ctx<'_>)) {
        let Some(node) = &mut self.nodes[index] else { return };
        let mut out = Vec::new();
        let (now, rng, directory) = (self.now, &mut self.rng, &node.directory);
        act(&mut node.tree, &mut Ctx { now, rng, directory, out: &mut out });
        node.tree.check_invariants().unwrap();
        for out in out {
            match out {
                Out::Connect(peer) => self.connect(index, peer),
                Out::Send(to, message) => {
                    self.queue.push_back((to.0 as usize, Step::Message(index, message)));
                }
                _ => {}
            }
        }
    }

    fn connect(&mut self, from: usize, peer: PeerInfo) {
        let to = usize::from(peer.contact.addresses[0]);
        let alive = self.nodes[to].is_some() && !self.unreachable.contains(&to);
        if alive && !self.unreachable.contains(&from) {
            self.queue.push_back((from, Step::LinkUp(to)));
            self.queue.push_back((to, Step::LinkUp(from)));
        } else {
            self.queue.push_back((from, Step::ConnectFailed(to)));
        }
    }

    fn settle(&mut self) {
        while let Some((index, step)) = self.queue.pop_front() {
            let Some(node) = &mut self.nodes[index] else { continue };
            match step {
                Step::LinkUp(far) => {
                    node.directory.add(link(far), info(far));
                    self.with(index, |tree, ctx| tree.handle_link_up(ctx, link(far), &info(far)));
                }
                Step::LinkDown(far) => {
                    node.directory.remove(link(far));
                    self.with(index, |tree, ctx| tree.handle_link_down(ctx, link(far)));
                }
                Step::ConnectFailed(far) => {
                    self.with(index, |tree, ctx| tree.handle_connect_failed(ctx, &info(far).id));
                }
                Step::Message(far, message) => {
                    if node.directory.peer(link(far)).is_some() {
                        self.with(index, |tree, ctx| tree.handle_message(ctx, link(far), message));
                    }
                }
            }
        }
    }

    fn crash(&mut self, index: usize) {
        let node = self.nodes[index].take().unwrap();
        for (link, _) in node.directory.iter() {
            self.queue.push_back((link.0 as usize, Step::LinkDown(index)));
        }
        self.settle();
    }

    fn leave(&mut self, index: usize) {
        self.with(index, |tree, ctx| tree.leave(ctx));
        self.settle();
        self.crash(index);
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        loop {
            let due =
                self.nodes.iter().flatten().filter_map(|node| node.tree.next_deadline()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            for index in 0..self.nodes.len() {
                let due = self.nodes[index].as_ref().and_then(|node| node.tree.next_deadline());
                if due.is_some_and(|due| due <= self.now) {
                    self.with(index, |tree, ctx| tree.handle_deadline(ctx));
                    self.settle();
                }
            }
        }
        self.now = end;
    }

    fn tree(&self, index: usize) -> &Tree {
        &self.nodes[index].as_ref().unwrap().tree
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&index| self.nodes[index].is_some()).collect()
    }

    /// Everyone alive hangs below `root`: walks up from each.
    fn assert_one_tree(&self, root: usize) {
        assert!(self.tree(root).is_root(), "{root} rules");
        for index in self.alive() {
            let mut at = index;
            for _ in 0..self.nodes.len() {
                match self.tree(at).parent() {
                    Some(parent) => {
                        let above = parent.0 as usize;
                        assert!(self.tree(above).children().any(|child| child == link(at)));
                        at = above;
                    }
                    None => break,
                }
            }
            assert_eq!(at, root, "member {index} ends at {at}");
            let lineage = self.tree(index).lineage();
            assert_eq!(lineage.root.id, info(root).id);
            assert_eq!(lineage.reign, self.tree(root).lineage().reign);
        }
    }
}

#[test]
fn members_join_into_one_tree_of_bounded_degree() {
    let village = Village::new(60, 1);
    village.assert_one_tree(0);
    for index in village.alive() {
        assert!(village.tree(index).children().count() <= 3);
        assert!(village.tree(index).depth() <= 12, "depth {}", village.tree(index).depth());
    }
}

#[test]
fn children_of_a_dead_parent_find_another_place() {
    let mut village = Village::new(40, 2);
    let inner: Vec<usize> = village
        .alive()
        .into_iter()
        .filter(|&i| i != 0 && village.tree(i).children().count() > 1)
        .collect();
    for index in inner.into_iter().take(6) {
        village.crash(index);
    }
    village.run(5.0);
    village.assert_one_tree(0);
}

#[test]
fn when_the_source_dies_one_successor_rules_and_when_it_returns_it_rules_again() {
    let mut village = Village::new(30, 3);
    let heir = village.tree(0).lineage().successors[0].contact.addresses[0];
    let reign = village.tree(0).lineage().reign;
    village.crash(0);
    village.run(10.0);
    village.assert_one_tree(usize::from(heir));
    assert!(village.tree(usize::from(heir)).lineage().reign > reign);
    village.start(0, &[]);
    village.run(30.0);
    village.assert_one_tree(0);
    assert!(village.tree(0).lineage().reign > reign + 1);
}

#[test]
fn a_source_that_leaves_in_good_order_is_followed_at_once() {
    let mut village = Village::new(30, 4);
    let heir = usize::from(village.tree(0).lineage().successors[0].contact.addresses[0]);
    village.leave(0);
    assert!(village.tree(heir).is_root());
    village.run(2.0);
    village.assert_one_tree(heir);
}

#[test]
fn when_source_and_all_successors_die_at_once_somebody_rules_within_a_minute() {
    let mut village = Village::new(30, 5);
    let successors = village.tree(0).lineage().successors.clone();
    village.crash(0);
    successors.iter().for_each(|heir| village.crash(usize::from(heir.contact.addresses[0])));
    village.run(60.0);
    assert!(village.alive().iter().any(|&index| village.tree(index).is_root()));
    // And the returning source unites them.
    village.start(0, &village.alive());
    village.run(120.0);
    village.assert_one_tree(0);
}

#[test]
fn two_roots_that_meet_become_one_tree_and_the_later_reign_wins() {
    let mut village = Village::new(20, 6);
    village.crash(0);
    village.run(10.0);
    let heir = village.alive().into_iter().find(|&i| village.tree(i).is_root()).unwrap();
    // A second root comes about: a member that saw nobody for too long.
    let other = village.alive().into_iter().find(|&i| village.tree(i).depth() == 2).unwrap();
    village.with(other, |tree, ctx| {
        ctx.out.push(Out::Send(tree.parent().unwrap(), Message::Part));
        tree.rule(ctx, 9);
    });
    village.settle();
    assert!(village.tree(heir).is_root() && village.tree(other).is_root());
    village.run(30.0);
    village.assert_one_tree(other);
}

#[test]
fn a_member_is_never_accepted_below_itself() {
    let mut village = Village::new(20, 7);
    let top = village.tree(0).children().next().unwrap().0 as usize;
    let below = village.tree(top).children().next().unwrap().0 as usize;
    village.with(below, |tree, ctx| tree.on_join(ctx, link(top), 0));
    assert!(village.tree(below).children().all(|child| child != link(top)));
    let told =
        Lineage { path: vec![info(below).id.short()], ..village.tree(below).lineage().clone() };
    village.with(below, |tree, ctx| tree.on_lineage(ctx, told));
    assert!(!village.tree(below).is_in_place() || village.tree(below).parent() != Some(link(top)));
    village.settle();
    village.run(5.0);
    village.assert_one_tree(0);
}

#[test]
fn a_newcomer_that_reaches_nobody_gives_up() {
    let mut village = Village::new(3, 8);
    (0..3).for_each(|index| village.crash(index));
    village.start(2, &[0, 1]);
    village.run(60.0);
    assert_eq!(village.tree(2).state, State::Idle);
    assert_eq!(village.tree(2).rounds, Config::default().rounds_max);
}

#[test]
fn a_latecomer_joins_through_any_member_after_the_source_is_gone() {
    let mut village = Village::new(12, 9);
    village.leave(0);
    village.run(3.0);
    let heir = village.alive().into_iter().find(|&i| village.tree(i).is_root()).unwrap();
    village.nodes.push(None);
    village.start(12, &[0, 7]);
    village.run(3.0);
    village.assert_one_tree(heir);
}

#[test]
fn the_root_invites_a_member_to_become_its_child() {
    let mut village = Village::new(30, 10);
    let deep = village.alive().into_iter().find(|&i| village.tree(i).depth() == 3).unwrap();
    village.with(0, |tree, ctx| {
        tree.set_root_children_max(4);
        tree.invite(ctx, info(deep));
    });
    village.settle();
    assert_eq!(village.tree(deep).parent(), Some(link(0)));
    village.assert_one_tree(0);
}
