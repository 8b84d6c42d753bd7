//! Overlay members: whatever messages two peers send, no member panics, and what must hold holds.
#![no_main]

use anabranch_proto::id::{Contact, LinkClass, LinkId, PeerId, PeerInfo};
use anabranch_proto::overlay::{Ctx, Holdings, Input, Links, Measured, Setup, System};
use anabranch_proto::random;
use anabranch_proto::time::{Duration, Time};
use libfuzzer_sys::fuzz_target;

/// Links that take every block.
struct Open;

impl Links for Open {
    fn try_send_block(&mut self, _: LinkId, _: u32, _: u32, _: Vec<u8>) -> bool {
        true
    }
    fn want_room(&mut self, _: LinkId) {}
    fn measured(&self, _: LinkId) -> Measured {
        Measured::default()
    }
}

fuzz_target!(|input: (u8, bool, Vec<(bool, Vec<u8>)>)| {
    let (system, is_source, messages) = input;
    let info = |name: &str| PeerInfo { id: PeerId::of_name(name), contact: Contact::default() };
    let me = if is_source { "source" } else { "me" };
    let setup =
        Setup { me: info(me), source: PeerId::of_name("source"), bootstrap: vec![info("source")] };
    let mut member = System::ALL[usize::from(system) % System::ALL.len()].member(setup);
    let mut holdings = Holdings::uniform(1000, 20_000);
    (0..if is_source { 20 } else { 5 }).for_each(|block| {
        holdings.hold(block);
    });
    let up = |link, name: &str| Input::LinkUp {
        link: LinkId(link),
        peer: PeerId::of_name(name),
        contact: Contact::default(),
        class: LinkClass::Reliable,
        dialled: true,
    };
    let mut inputs = vec![Input::Start, up(0, if is_source { "other" } else { "source" })];
    inputs.push(up(1, "third"));
    for (is_third, bytes) in messages.into_iter().take(32) {
        inputs.push(Input::Message { link: LinkId(u32::from(is_third)), bytes });
        inputs.push(Input::Deadline);
    }
    let mut rng = random::stream(1, "me", "fuzz");
    let mut now = Time::ZERO;
    for input in inputs {
        let mut out = Vec::new();
        now = now + Duration::from_millis(50);
        let holdings = &holdings;
        let mut ctx = Ctx { now, rng: &mut rng, holdings, links: &mut Open, out: &mut out };
        member.handle(&mut ctx, input);
        if let Err(what) = member.check_invariants(holdings) {
            panic!("{what}");
        }
    }
});
