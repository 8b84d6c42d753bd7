use super::*;
use crate::id::Contact;
use crate::overlay::{Links, Measured};
use crate::random::{Rng, stream};
use crate::summary::Exact;

/// Links that take `room` blocks and then none.
struct Roomy {
    room: u32,
    taken: Vec<(LinkId, BlockIndex)>,
}

impl Links for Roomy {
    fn try_send_block(&mut self, link: LinkId, block: BlockIndex, _: u32, _: Vec<u8>) -> bool {
        let accepted = self.room > 0;
        if accepted {
            self.room -= 1;
            self.taken.push((link, block));
        }
        accepted
    }
    fn want_room(&mut self, _: LinkId) {}
    fn measured(&self, _: LinkId) -> Measured {
        Measured::default()
    }
}

/// A member among peers that the test plays; ten pieces of four blocks.
struct Played {
    member: BitTorrent,
    holdings: Holdings,
    links: Roomy,
    rng: Rng,
    now: Time,
    out: Vec<Output>,
}

fn info(name: &str) -> PeerInfo {
    PeerInfo {
        id: PeerId::of_name(name),
        contact: Contact { addresses: Vec::new(), reachable: true },
    }
}

impl Played {
    fn new(name: &str, held: std::ops::Range<u32>, config: Config) -> Played {
        let mut holdings = Holdings::uniform(1_000, 40_000);
        held.for_each(|block| {
            holdings.hold(block);
        });
        let bootstrap = if name == "source" { vec![] } else { vec![info("source")] };
        let setup = Setup { me: info(name), source: info("source").id, bootstrap };
        let config = Config { piece_len: 4_000, ..config };
        let mut played = Played {
            member: BitTorrent::new(setup, config),
            holdings,
            links: Roomy { room: 0, taken: Vec::new() },
            rng: stream(1, name, "test"),
            now: Time::from_secs_f64(1.0),
            out: Vec::new(),
        };
        played.give(Input::Start);
        played
    }

    fn give(&mut self, input: Input) {
        let mut ctx = Ctx {
            now: self.now,
            rng: &mut self.rng,
            holdings: &self.holdings,
            links: &mut self.links,
            out: &mut self.out,
        };
        self.member.handle(&mut ctx, input);
        self.member.check_invariants(&self.holdings).unwrap();
    }

    fn say(&mut self, link: u32, message: Message) {
        self.give(Input::Message { link: LinkId(link), bytes: message.encode() });
    }

    fn up(&mut self, link: u32, name: &str) {
        let PeerInfo { id: peer, contact } = info(name);
        let class = LinkClass::Reliable;
        self.give(Input::LinkUp { link: LinkId(link), peer, contact, class, dialled: true });
    }

    /// A peer that has shaken hands, with these pieces.
    fn meet(&mut self, link: u32, have: Exact) {
        self.up(link, &format!("peer{link}"));
        self.say(link, Message::Handshake { piece_blocks: 4, have });
    }

    fn block(&mut self, link: u32, block: BlockIndex) {
        let duplicate = !self.holdings.hold(block);
        self.give(Input::Block { link: LinkId(link), block, header: Vec::new(), duplicate });
    }

    /// What was sent to `link` since the last look at all.
    fn sent(&mut self, link: u32) -> Vec<Message> {
        let is_here = |output: Output| match output {
            Output::Message { link: to, bytes } if to == LinkId(link) => Message::decode(&bytes),
            _ => None,
        };
        std::mem::take(&mut self.out).into_iter().filter_map(is_here).collect()
    }

    fn requests(&mut self, link: u32) -> Vec<BlockIndex> {
        let of = |message| match message {
            Message::Request { block } => Some(block),
            _ => None,
        };
        self.sent(link).into_iter().filter_map(of).collect()
    }

    fn wait(&mut self, secs: u64) {
        for _ in 0..secs {
            self.now += Duration::from_secs(1);
            self.give(Input::Deadline);
        }
    }
}

#[test]
fn a_downloader_says_it_is_interested_and_keeps_five_requests_outstanding_once_unchoked() {
    let mut me = Played::new("me", 0..0, Config::default());
    me.meet(1, Exact::All);
    assert!(me.sent(1).contains(&Message::Interested));
    me.say(1, Message::Unchoke);
    let asked = me.requests(1);
    assert_eq!(asked.len(), 5);
    me.block(1, asked[0]);
    assert_eq!(me.requests(1).len(), 1);
    me.say(1, Message::Choke);
    me.block(1, asked[1]);
    assert_eq!(me.requests(1), [], "a choked member asks for nothing");
}

#[test]
fn a_rejected_block_is_asked_of_another_peer_and_counted() {
    let mut me = Played::new("me", 0..0, Config::default());
    me.meet(1, Exact::All);
    me.say(1, Message::Unchoke);
    let asked = me.requests(1);
    me.say(1, Message::Choke);
    me.say(1, Message::Reject { block: asked[0] });
    me.meet(2, Exact::All);
    me.say(2, Message::Unchoke);
    assert!(me.requests(2).contains(&asked[0]));
    assert_eq!(me.member.stats().rerequests_bad, 1);
}

#[test]
fn only_blocks_of_whole_pieces_are_served_and_only_to_the_unchoked() {
    let mut me = Played::new("me", 0..6, Config::default());
    me.meet(1, Exact::Nothing);
    me.links.room = 1;
    me.say(1, Message::Request { block: 0 });
    assert_eq!(me.sent(1).last(), Some(&Message::Reject { block: 0 }));
    me.say(1, Message::Interested);
    assert!(me.sent(1).contains(&Message::Unchoke), "there is a free slot");
    for block in [0, 1, 5] {
        me.say(1, Message::Request { block });
    }
    assert_eq!(me.links.taken, [(LinkId(1), 0)]);
    assert_eq!(me.sent(1), [Message::Reject { block: 5 }]);
    me.say(1, Message::Cancel { block: 1 });
    assert_eq!(me.sent(1), [Message::Reject { block: 1 }]);
}

#[test]
fn in_the_endgame_every_peer_is_asked_and_whoever_is_late_gets_a_cancel() {
    let mut me = Played::new("me", 0..38, Config::default());
    for link in [1, 2] {
        me.meet(link, Exact::All);
    }
    me.say(1, Message::Unchoke);
    assert_eq!(me.requests(1), [38, 39]);
    me.say(2, Message::Unchoke);
    let mut again = me.requests(2);
    again.sort_unstable();
    assert_eq!(again, [38, 39]);
    assert_eq!(me.member.stats().rerequests_endgame, 2);
    me.block(2, 38);
    assert_eq!(me.sent(1), [Message::Cancel { block: 38 }]);
    me.block(1, 39);
    assert!(me.out.contains(&Output::Done));
}

#[test]
fn a_whole_piece_is_announced_to_everyone_and_those_who_had_it_may_lose_interest() {
    let mut me = Played::new("me", 0..3, Config::default());
    let mut first = crate::summary::Bitmap::new(10);
    first.insert(0);
    me.meet(1, Exact::Bits(first.to_bytes()));
    me.meet(2, Exact::All);
    me.sent(0);
    me.block(2, 3);
    let out = std::mem::take(&mut me.out);
    let to = |link: u32, message: Message| Output::Message {
        link: LinkId(link),
        bytes: message.encode(),
    };
    assert!(out.contains(&to(1, Message::Have { piece: 0 })));
    assert!(out.contains(&to(2, Message::Have { piece: 0 })));
    assert!(out.contains(&to(1, Message::NotInterested)));
    assert!(!out.contains(&to(2, Message::NotInterested)));
}

#[test]
fn a_peer_with_a_corrupt_block_is_hung_up_on_and_not_taken_back() {
    let mut me = Played::new("me", 0..0, Config::default());
    me.meet(1, Exact::All);
    me.say(1, Message::Unchoke);
    let block = me.requests(1)[0];
    me.give(Input::BadBlock { link: LinkId(1), block, corrupt: true });
    assert!(me.out.contains(&Output::Disconnect { link: LinkId(1) }));
    me.give(Input::LinkDown { link: LinkId(1), reason: crate::overlay::DownReason::Local });
    me.out.clear();
    me.up(2, "peer1");
    assert!(me.out.contains(&Output::Disconnect { link: LinkId(2) }));
}

#[test]
fn a_peer_that_delivers_nothing_for_a_minute_is_served_in_its_turn_only() {
    // One regular slot and the optimistic one.
    let config = Config { upload_slots: 2, ..Config::default() };
    let mut me = Played::new("me", 0..4, config);
    for link in [1, 2, 3] {
        me.meet(link, Exact::All);
        me.say(link, Message::Interested);
        me.say(link, Message::Unchoke);
    }
    let asked = me.requests(1).len() + me.requests(2).len();
    assert!(asked > 0);
    me.wait(70);
    let peers = me.member.candidates(me.now);
    assert!(peers.iter().all(|peer| peer.is_snubbing));
    assert_eq!(me.member.choker.choose(&me.member.config, &peers).len(), 2);
    me.block(3, 39);
    let peers = me.member.candidates(me.now);
    assert_eq!(peers.iter().filter(|peer| !peer.is_snubbing).count(), 1);
    assert!(me.member.choker.choose(&me.member.config, &peers).contains(&LinkId(3)));
}

#[test]
fn the_tracker_names_members_to_each_other_and_passes_each_outcome_on_once() {
    let mut source = Played::new("source", 0..40, Config::default());
    source.up(1, "a");
    source.say(1, Message::Announce { reason: Reason::Present });
    source.up(2, "b");
    source.out.clear();
    source.say(2, Message::Announce { reason: Reason::Present });
    let sent = source.sent(2);
    let [Message::Peers { peers, .. }] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(peers.len(), 2);
    assert!(peers.contains(&info("a")) && peers.contains(&info("source")));
    let outcome = Outcome {
        peer: info("somebody else").id,
        elapsed_ms: 5,
        bytes_from_source: 1,
        bytes_from_peers: 2,
        bytes_before: 3,
    };
    for _ in 0..2 {
        source.say(2, Message::Announce { reason: Reason::Completed(outcome.clone()) });
    }
    let is_outcome = |output: &&Output| matches!(output, Output::Outcome(_));
    let told: Vec<&Output> = source.out.iter().filter(is_outcome).collect();
    assert_eq!(told, [&Output::Outcome(Outcome { peer: info("b").id, ..outcome })]);
}

#[test]
fn a_newcomer_announces_itself_and_dials_whom_the_tracker_names() {
    let mut me = Played::new("me", 0..0, Config::default());
    assert!(me.out.contains(&Output::Connect { peer: info("source"), class: LinkClass::Reliable }));
    me.up(0, "source");
    assert_eq!(me.sent(0), [Message::Announce { reason: Reason::Present }]);
    let peers = vec![info("a"), info("me"), info("b")];
    me.say(0, Message::Peers { interval_s: 60, peers });
    let dialled: Vec<&str> = ["a", "b", "me"]
        .into_iter()
        .filter(|name| {
            let dial = Output::Connect { peer: info(name), class: LinkClass::Reliable };
            me.out.contains(&dial)
        })
        .collect();
    assert_eq!(dialled, ["a", "b"]);
}

#[test]
fn a_member_that_reaches_nobody_gives_up_after_minutes() {
    let mut me = Played::new("me", 0..0, Config::default());
    for _ in 0..600 {
        me.wait(1);
        me.give(Input::ConnectFailed { peer: info("source").id });
        if me.out.contains(&Output::Failed { reason: FailReason::Unreachable }) {
            assert!(me.now > Time::from_secs_f64(120.0), "{:?}", me.now);
            return;
        }
    }
    panic!("it never gives up");
}

#[test]
fn two_that_have_everything_part_and_peers_beyond_the_limit_are_turned_away() {
    let config = Config { peers_max: 1, ..Config::default() };
    let mut me = Played::new("me", 0..40, config);
    me.meet(1, Exact::All);
    assert!(me.out.contains(&Output::Disconnect { link: LinkId(1) }));
    me.meet(2, Exact::Nothing);
    me.meet(3, Exact::Nothing);
    assert!(me.out.contains(&Output::Disconnect { link: LinkId(3) }));
    assert!(!me.out.contains(&Output::Disconnect { link: LinkId(2) }));
}
