//! How links come and go: set-up times, refusals, farewells, crashes, cuts.
//!
//! ```text
//!   source ── 20 ms one way, 10 Mb/s ── r1, r2
//! ```

mod puppet;

use anabranch_proto::id::{LinkClass, LinkId, PeerInfo};
use anabranch_proto::overlay::{Ctx, DownReason, Input, Output, Setup, System};
use anabranch_proto::time::Time;
use anabranch_world::sim::{Fault, HostId, SimError, Wire};
use anabranch_world::story::Story;
use anabranch_world::units::{kbit, mbit, ms, s};
use puppet::{Act, Diary, of, puppets};

fn story(act: Act, diary: &Diary) -> Story {
    Story::new(1, System::Star)
        .members(puppets(act, diary))
        .hosts(2)
        .up(mbit(10))
        .down(mbit(10))
        .delay(ms(20))
}

fn dial_source(setup: &Setup, ctx: &mut Ctx<'_>, input: &Input, _: &mut Option<Time>) {
    if *input == Input::Start {
        setup.bootstrap.iter().for_each(|peer| connect(ctx, peer));
    }
}

fn connect(ctx: &mut Ctx<'_>, peer: &PeerInfo) {
    ctx.out.push(Output::Connect { peer: peer.clone(), class: LinkClass::Reliable });
}

fn is_up(input: &Input) -> bool {
    matches!(input, Input::LinkUp { .. })
}

fn is_down(input: &Input) -> bool {
    matches!(input, Input::LinkDown { .. })
}

fn is_failed(input: &Input) -> bool {
    matches!(input, Input::ConnectFailed { .. })
}

fn link_of(input: &Input) -> Option<LinkId> {
    match input {
        Input::LinkUp { link, .. } => Some(*link),
        _ => None,
    }
}

#[test]
fn a_link_is_up_after_two_and_a_half_round_trips_at_the_listener_and_three_at_the_dialler() {
    let diary = Diary::default();
    story(dial_source, &diary).run_for(s(2)).unwrap();
    assert_eq!(of(&diary, "source", is_up)[0].0, 100.0);
    assert_eq!(of(&diary, "r1", is_up)[0].0, 120.0);
}

#[test]
fn a_host_that_accepts_no_connections_refuses_after_one_round_trip_and_may_dial_itself() {
    let diary = Diary::default();
    story(dial_source, &diary).unreachable("source").run_for(s(2)).unwrap();
    assert_eq!(of(&diary, "r1", is_failed)[0].0, 40.0);
    let diary = Diary::default();
    story(dial_source, &diary).unreachable("r1").run_for(s(2)).unwrap();
    assert_eq!(of(&diary, "r1", is_up).len(), 1);
}

#[test]
fn a_dial_meets_silence_where_a_host_is_gone_or_cut_off_and_a_refusal_where_none_listens() {
    let cases = [
        (Fault::Crash(HostId(0)), 3_000.0),
        (Fault::Cut(HostId(0), HostId(1)), 3_000.0),
        (Fault::Kill(HostId(0)), 40.0),
    ];
    for (fault, after) in cases {
        let diary = Diary::default();
        let mut story = story(dial_source, &diary).starts("r1", s(2));
        story.at(s(1)).fault(fault.clone());
        story.run_for(s(10)).unwrap();
        let failed = of(&diary, "r1", is_failed);
        assert_eq!((failed.len(), failed[0].0), (1, 2_000.0 + after), "{fault:?}");
    }
}

#[test]
fn dials_that_cross_make_one_link() {
    fn both(setup: &Setup, ctx: &mut Ctx<'_>, input: &Input, deadline: &mut Option<Time>) {
        dial_source(setup, ctx, input, deadline);
        // r1 and r2 dial each other while both dials are under way, and again when linked.
        if *input == Input::Start {
            *deadline = Some(ctx.now + ms(10));
        }
        if *input == Input::Deadline && !setup.is_source() {
            dial_number(ctx, 1, "r1");
            dial_number(ctx, 2, "r2");
            *deadline = (ctx.now < Time::ZERO + s(1)).then_some(ctx.now + ms(37));
        }
    }
    let diary = Diary::default();
    let end = story(both, &diary).hosts(3).run_for(s(2)).unwrap();
    for (host, links) in [("source", 2), ("r1", 2), ("r2", 2)] {
        let ups = of(&diary, host, is_up);
        assert_eq!(ups.len(), links, "{host}: {ups:?}");
        let id = end.sim().host(host).unwrap();
        assert_eq!(end.sim().links(id), links);
    }
    // Dialling oneself fails at once, each time anew.
    assert!(of(&diary, "r1", is_failed).len() > 10);
    assert_eq!(of(&diary, "r1", is_failed)[0].0, 10.0);
}

fn dial_number(ctx: &mut Ctx<'_>, number: u32, name: &str) {
    let contact =
        anabranch_proto::id::Contact { addresses: number.to_le_bytes().to_vec(), reachable: true };
    connect(ctx, &PeerInfo { id: anabranch_proto::id::PeerId::of_name(name), contact });
}

#[test]
fn a_contact_that_leads_nowhere_or_to_somebody_else_fails() {
    fn lost(_: &Setup, ctx: &mut Ctx<'_>, input: &Input, _: &mut Option<Time>) {
        if *input == Input::Start {
            dial_number(ctx, 77, "source");
            dial_number(ctx, 0, "r1");
        }
    }
    let diary = Diary::default();
    story(lost, &diary).run_for(s(1)).unwrap();
    assert_eq!(of(&diary, "r1", is_failed).len(), 2);
    assert!(of(&diary, "r1", is_up).is_empty());
}

#[test]
fn what_is_queued_goes_out_before_a_link_is_closed() {
    fn send_and_close(setup: &Setup, ctx: &mut Ctx<'_>, input: &Input, d: &mut Option<Time>) {
        dial_source(setup, ctx, input, d);
        if let (Some(link), false) = (link_of(input), setup.is_source()) {
            (0..10).for_each(|byte| ctx.send(link, vec![byte; 10_000]));
            ctx.out.push(Output::Disconnect { link });
        }
    }
    let diary = Diary::default();
    let end = story(send_and_close, &diary).run_for(s(2)).unwrap();
    let got = of(&diary, "source", |input| matches!(input, Input::Message { .. }));
    assert_eq!(got.len(), 10);
    let far = of(&diary, "source", is_down);
    let near = of(&diary, "r1", is_down);
    assert!(matches!(far[0].1, Input::LinkDown { reason: DownReason::Remote, .. }));
    assert!(matches!(near[0].1, Input::LinkDown { reason: DownReason::Local, .. }));
    // 100 kB at 10 Mb/s are 80 ms.
    assert!((200.0..202.0).contains(&near[0].0), "{}", near[0].0);
    assert!((220.0..222.0).contains(&far[0].0), "{}", far[0].0);
    assert_eq!(end.sim().links(end.sim().host("r1").unwrap()), 0);
}

#[test]
fn a_crash_is_known_by_silence_and_a_kill_by_a_reset() {
    let diary = Diary::default();
    let mut crash = story(dial_source, &diary);
    crash.at(s(5)).crash("r1");
    crash.run_for(s(30)).unwrap();
    let down = of(&diary, "source", is_down);
    assert!(matches!(down[0].1, Input::LinkDown { reason: DownReason::Silent, .. }));
    // Quiet ends ping every two to four seconds; eight without a sign of life are too many.
    assert!((9_000.0..13_100.0).contains(&down[0].0), "{}", down[0].0);

    let diary = Diary::default();
    let mut kill = story(dial_source, &diary);
    kill.at(s(5)).kill("r1");
    kill.run_for(s(30)).unwrap();
    let down = of(&diary, "source", is_down);
    assert!(matches!(down[0].1, Input::LinkDown { reason: DownReason::Broken, .. }));
    assert_eq!(down[0].0, 5_020.0);
}

#[test]
fn a_host_that_comes_back_has_its_old_links_reset_before_it_makes_new_ones() {
    let diary = Diary::default();
    let mut story = story(dial_source, &diary);
    story.at(s(5)).crash("r1");
    story.at(s(6)).restart("r1");
    story.run_for(s(30)).unwrap();
    let seen = of(&diary, "source", |input| is_up(input) || is_down(input));
    let kinds: Vec<bool> = seen.iter().map(|(_, input)| is_up(input)).collect();
    assert_eq!(kinds, [true, false, true], "{seen:?}");
    assert_eq!((seen[1].0, seen[2].0), (6_020.0, 6_100.0));
}

fn count_up(setup: &Setup, ctx: &mut Ctx<'_>, input: &Input, deadline: &mut Option<Time>) {
    dial_source(setup, ctx, input, deadline);
    let is_mine = |input: &Input| is_up(input) || *input == Input::Deadline;
    if is_mine(input) && !setup.is_source() {
        // Ten messages a second, numbered by the sender's time.
        let link = link_of(input).unwrap_or(LinkId(0));
        ctx.send(link, ctx.now.0.to_le_bytes().to_vec());
        *deadline = Some(ctx.now + ms(100));
    }
}

fn messages(diary: &Diary) -> Vec<(f64, f64)> {
    let got = of(diary, "source", |input| matches!(input, Input::Message { .. }));
    got.into_iter()
        .map(|(at, input)| match input {
            Input::Message { bytes, .. } => {
                (at, u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as f64 / 1e6)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_short_cut_delays_messages_and_loses_none() {
    let diary = Diary::default();
    let mut story = story(count_up, &diary);
    story.at(s(1)).cut("source", "r1");
    story.at(s(4)).heal("source", "r1");
    story.run_for(s(8)).unwrap();
    assert!(of(&diary, "source", is_down).is_empty());
    let got = messages(&diary);
    assert!(got.len() >= 78, "{}", got.len());
    assert!(got.windows(2).all(|two| two[1].1 - two[0].1 >= 100.0 && two[1].1 - two[0].1 < 101.0));
    assert!(!got.iter().any(|(at, _)| (1_000.1..4_020.0).contains(at)));
    assert!(got.iter().all(|(at, sent)| at - sent >= 20.0));
}

#[test]
fn a_long_cut_takes_the_link_down_at_both_ends() {
    let diary = Diary::default();
    let mut story = story(dial_source, &diary);
    story.at(s(1)).cut("source", "r1");
    story.at(s(40)).heal("source", "r1");
    story.run_for(s(60)).unwrap();
    for host in ["source", "r1"] {
        let down = of(&diary, host, is_down);
        assert!(matches!(down[0].1, Input::LinkDown { reason: DownReason::Silent, .. }));
        assert!(down[0].0 < 10_000.0, "{}", down[0].0);
    }
}

#[test]
fn order_is_kept_when_a_path_becomes_shorter() {
    for wire in [Wire::Fluid, Wire::Latency] {
        let diary = Diary::default();
        let mut story = story(count_up, &diary).configure(|config| config.wire = wire);
        story.at(s(1)).delay("source", "r1", ms(900));
        story.at(s(3)).delay("source", "r1", ms(5));
        story.run_for(s(6)).unwrap();
        let got = messages(&diary);
        assert!(got.windows(2).all(|two| two[0].1 < two[1].1));
        assert!(got.iter().any(|(at, sent)| at - sent > 899.0));
        assert!(got.last().is_some_and(|(at, sent)| at - sent < 6.0));
    }
}

#[test]
fn a_drifting_clock_is_the_members_own_time() {
    fn ten_seconds(_: &Setup, ctx: &mut Ctx<'_>, input: &Input, deadline: &mut Option<Time>) {
        if *input == Input::Start {
            *deadline = Some(ctx.now + s(10));
        }
    }
    let diary = Diary::default();
    let story = story(ten_seconds, &diary).clock("r1", s(3_600), 10_000);
    let mut sim = story.build();
    // One percent fast: ten seconds of its own are 9.901 of ours.
    sim.run(Time::from_secs_f64(9.9), |_| false).unwrap();
    assert!(of(&diary, "r1", |input| *input == Input::Deadline).is_empty());
    sim.run(Time::from_secs_f64(9.902), |_| false).unwrap();
    let fired = of(&diary, "r1", |input| *input == Input::Deadline);
    assert!((fired[0].0 - 3_610_000.0).abs() < 0.1, "{}", fired[0].0);
}

#[test]
fn the_latency_wire_carries_messages_in_their_delay_and_refuses_bulk() {
    let diary = Diary::default();
    let latency = |story: Story| story.configure(|config| config.wire = Wire::Latency);
    latency(story(count_up, &diary)).run_for(s(2)).unwrap();
    let got = messages(&diary);
    assert!(got.len() > 15);
    assert!(got.iter().all(|(at, sent)| *at == sent + 20.0));

    let star = latency(Story::new(1, System::Star).hosts(2));
    let Err(error) = star.run_for(s(5)) else { panic!("a block went over the latency wire") };
    assert!(matches!(&error, SimError::BulkOnLatencyWire { host, .. } if host == "source"));
    assert!(error.to_string().contains("use the fluid wire"), "{error}");
}

#[test]
fn a_member_that_never_lets_time_pass_is_stopped() {
    fn spin(_: &Setup, ctx: &mut Ctx<'_>, _: &Input, deadline: &mut Option<Time>) {
        *deadline = Some(ctx.now);
    }
    // Deadlines are at least a timer's step apart: this costs events, not the run.
    let diary = Diary::default();
    let end = story(spin, &diary).run_for(ms(100)).unwrap();
    assert!(end.sim().events() < 5_000, "{}", end.sim().events());
    fn redial(_: &Setup, ctx: &mut Ctx<'_>, _: &Input, _: &mut Option<Time>) {
        dial_number(ctx, 1, "r1");
    }
    let result = story(redial, &Diary::default()).run_for(s(1));
    assert!(matches!(result, Err(SimError::Livelock { .. })), "dialling oneself for ever");
}

#[test]
fn bytes_of_a_fragment_that_is_still_arriving_are_signs_of_life() {
    fn send_block(setup: &Setup, ctx: &mut Ctx<'_>, input: &Input, deadline: &mut Option<Time>) {
        count_up(setup, ctx, input, deadline);
        if let (Some(link), true) = (link_of(input), setup.is_source()) {
            assert!(ctx.try_send_block(link, 0, Vec::new()));
        }
    }
    // The fragment takes 131 s at 1 kb/s, sixteen times as long as silence is borne.
    let diary = Diary::default();
    let slow = story(send_block, &diary).rates("source", kbit(1), mbit(10));
    slow.run_for(s(140)).unwrap();
    assert!(of(&diary, "r1", is_down).is_empty());
    let blocks = of(&diary, "r1", |input| matches!(input, Input::Block { block: 0, .. }));
    assert!((131_000.0..132_000.0).contains(&blocks[0].0), "{}", blocks[0].0);
}
