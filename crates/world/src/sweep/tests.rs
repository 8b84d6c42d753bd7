use super::*;
use anabranch_proto::overlay::{Ctx, Holdings, Input, Output, Stats};

#[test]
fn two_hundred_seeds_pass_on_star() {
    let summary = run(&Subject::of(System::Star), 0..200, 2);
    if let Some(failed) = summary.failed.first() {
        panic!("{} of 200 seeds failed; {failed}", summary.failed.len());
    }
    assert!(summary.due >= 190, "liveness was due in {} seeds only", summary.due);
}

#[test]
fn two_hundred_seeds_pass_on_bittorrent() {
    let summary = run(&Subject::of(System::BitTorrent), 0..200, 2);
    if let Some(failed) = summary.failed.first() {
        panic!("{} of 200 seeds failed; {failed}", summary.failed.len());
    }
    assert!(summary.due >= 180, "liveness was due in {} seeds only", summary.due);
}

#[test]
fn sixty_seeds_pass_on_star_and_bittorrent_over_packets() {
    for system in [System::Star, System::BitTorrent] {
        let summary = run(&Subject::of(system).on_packets(), 0..60, 2);
        if let Some(failed) = summary.failed.first() {
            panic!("{} of 60 seeds failed; {failed}", summary.failed.len());
        }
        assert!(summary.due >= 50, "liveness was due in {} seeds only", summary.due);
    }
}

#[test]
fn the_draws_cover_every_kind_of_trouble() {
    let scenarios: Vec<Scenario> = (0..200).map(|seed| Scenario::draw(seed, true)).collect();
    let count = |has: &dyn Fn(&Scenario) -> bool| scenarios.iter().filter(|s| has(s)).count();
    let has_fault = |is: fn(&Fault) -> bool| count(&|s| s.script.iter().any(|(_, f)| is(f)));
    let has_host = |is: fn(&crate::sim::HostSpec) -> bool| count(&|s| s.hosts.iter().any(is));
    assert!(has_fault(|f| matches!(f, Fault::Crash(_))) >= 20);
    assert!(has_fault(|f| matches!(f, Fault::Kill(_))) >= 20);
    assert!(has_fault(|f| matches!(f, Fault::Leave(_))) >= 20);
    assert!(has_fault(|f| matches!(f, Fault::Start(_))) >= 20);
    assert!(has_fault(|f| matches!(f, Fault::StartWithTicketOf(..))) >= 5);
    assert!(has_fault(|f| matches!(f, Fault::Cut(..))) >= 40);
    assert!(has_fault(|f| matches!(f, Fault::Partition(_))) >= 20);
    assert!(has_fault(|f| matches!(f, Fault::Rates(..))) >= 30);
    assert!(has_host(|h| h.corrupt) >= 20);
    assert!(has_host(|h| !h.reachable) >= 20);
    assert!(has_host(|h| h.clock.drift_ppb != 0) >= 60);
    assert!(count(&|s| s.source_exit.is_some_and(|exit| exit.at.is_none())) >= 15);
    assert!(count(&|s| s.source_exit.is_some_and(|exit| exit.returns_after.is_some())) >= 15);
}

/// A star that is broken in one way.
struct Broken {
    inner: Box<dyn Overlay + Send>,
    how: Flaw,
    handled: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    ClaimsDone,
    NeverAsks,
    SendsUnheld,
    FailsItsInvariants,
}

impl Overlay for Broken {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        self.handled += 1;
        match (self.how, &input) {
            (Flaw::ClaimsDone, Input::LinkUp { .. }) => ctx.out.push(Output::Done),
            (Flaw::NeverAsks, Input::LinkUp { .. }) => return,
            (Flaw::SendsUnheld, Input::LinkUp { link, .. }) if !ctx.holdings.is_complete() => {
                let block = ctx.holdings.blocks() - 1;
                ctx.links.try_send_block(*link, block, 1, Vec::new());
            }
            _ => {}
        }
        self.inner.handle(ctx, input);
    }
    fn next_deadline(&self) -> Option<Time> {
        self.inner.next_deadline()
    }
    fn stats(&self) -> &Stats {
        self.inner.stats()
    }
    fn check_invariants(&self, holdings: &Holdings) -> Result<(), String> {
        if self.how == Flaw::FailsItsInvariants && self.handled > 5 {
            return Err("broken on purpose".into());
        }
        self.inner.check_invariants(holdings)
    }
    fn contacts(&self) -> Vec<anabranch_proto::id::PeerInfo> {
        self.inner.contacts()
    }
}

#[test]
fn a_member_that_breaks_a_rule_is_caught_and_the_replay_command_named() {
    let cases = [
        (Flaw::ClaimsDone, "says it is done and is not"),
        (Flaw::SendsUnheld, "which it does not hold"),
        (Flaw::FailsItsInvariants, "broken on purpose"),
        (Flaw::NeverAsks, "not complete at"),
    ];
    for (how, expected) in cases {
        let failed = sweep_broken(how);
        let said = failed.to_string();
        assert!(said.contains(expected), "{said}");
        assert!(said.contains(&format!("--seeds {0}..{1}", failed.seed, failed.seed + 1)));
    }
}

fn sweep_broken(how: Flaw) -> Failed {
    let member = Arc::new(move |setup: Setup| {
        let inner = System::Star.member(setup);
        Box::new(Broken { inner, how, handled: 0 }) as Box<dyn Overlay + Send>
    });
    let subject =
        Subject { name: "broken".into(), member, survives_source: false, is_packet: false };
    let summary = run(&subject, 0..8, 1);
    summary.failed.into_iter().next().expect("a broken member fails some seed")
}
