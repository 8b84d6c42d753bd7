use super::*;

/// A session over a pipe that has been fast for long.
fn session() -> Session {
    let backlog = backlog::Bounds::fixed(128 * 1024);
    let mut session = Session::new(LinkConfig { backlog, ..LinkConfig::default() }, Time::ZERO);
    session.ping_at = None;
    session
}

fn pump(from: &mut Session, to: &mut Session) -> Vec<Event> {
    while let Some(frame) = from.poll_transmit() {
        from.set_pipe_unsent(Time::ZERO, 0);
        to.handle_frame(Time::ZERO, frame).unwrap();
    }
    std::iter::from_fn(|| to.poll_event()).collect()
}

#[test]
fn a_message_overtakes_the_rest_of_a_block_between_two_fragments() {
    let (mut a, mut b) = (session(), session());
    assert!(a.try_send_block(3, 40_000, vec![1]));
    assert!(matches!(a.poll_transmit(), Some(Frame::BlockStart { block: 3, len: 40_000, .. })));
    assert_eq!(a.sending(), Some((3, 0)));
    assert_eq!(a.poll_transmit(), Some(Frame::Fragment { len: 16_384 }));
    a.send(Channel::Overlay, vec![9]);
    assert!(matches!(a.poll_transmit(), Some(Frame::Message { .. })));
    assert_eq!(a.sending(), Some((3, 16_384)));
    b.handle_frame(
        Time::ZERO,
        Frame::BlockStart { block: 3, len: 40_000, header: vec![1], proof: vec![] },
    )
    .unwrap();
    b.handle_frame(Time::ZERO, Frame::Fragment { len: 16_384 }).unwrap();
    let events = pump(&mut a, &mut b);
    let last = events.last().unwrap();
    assert!(matches!(last, Event::Fragment { block: 3, offset: 32_768, len: 7_232, last: true }));
}

#[test]
fn a_block_is_refused_above_the_low_water_mark_and_one_room_event_follows() {
    let mut a = session();
    assert!(a.try_send_block(0, 100_000, vec![]));
    assert!(!a.try_send_block(1, 100_000, vec![]));
    assert!(!a.try_send_block(1, 100_000, vec![]));
    let mut rooms = 0;
    while a.poll_transmit().is_some() {
        a.set_pipe_unsent(Time::ZERO, 0);
        rooms += std::iter::from_fn(|| a.poll_event()).filter(|e| *e == Event::Room).count();
    }
    assert_eq!(rooms, 1);
    assert!(a.try_send_block(1, 100_000, vec![]));
}

#[test]
fn on_a_slow_pipe_fragments_are_short_and_few_bytes_wait_before_a_message() {
    let mut a = Session::new(LinkConfig::default(), Time::ZERO);
    a.ping_at = None;
    for block in 0..40 {
        // A block of 16 KiB each 400 ms, 1,638 bytes each 40 ms.
        assert!(a.try_send_block(block, 16_384, vec![]));
        for step in 1..=10 {
            let now = Time((u64::from(block) * 400 + step * 40) * 1_000_000);
            let frame = a.poll_transmit();
            assert!(!matches!(frame, Some(Frame::Fragment { len }) if len > 4_096), "{frame:?}");
            a.set_pipe_unsent(now, 0);
        }
    }
    assert_eq!(a.backlog(), 4_096);
    assert!(a.try_send_block(99, 16_384, vec![]));
    assert!(!a.try_send_block(100, 16_384, vec![]), "one block waits, not two");
}

#[test]
fn bytes_that_the_pipe_still_holds_count_against_room() {
    let mut a = session();
    a.set_pipe_unsent(Time::ZERO, 32 * 1024);
    assert!(!a.try_send_block(0, 1, vec![]));
    a.set_pipe_unsent(Time::ZERO, 32 * 1024 - 1);
    assert_eq!(a.poll_event(), Some(Event::Room));
    assert!(a.try_send_block(0, 1, vec![]));
}

#[test]
fn a_silent_peer_is_pinged_and_then_given_up() {
    let mut a = Session::new(LinkConfig::default(), Time::ZERO);
    a.handle_deadline(Time::ZERO);
    assert_eq!(a.poll_transmit(), Some(Frame::Ping { nonce: 1 }));
    a.handle_frame(Time::from_secs_f64(0.1), Frame::Pong { nonce: 1 }).unwrap();
    assert_eq!(a.measured().rtt, Some(Duration::from_millis(100)));
    while !a.is_down() {
        let at = a.next_deadline().unwrap();
        a.handle_deadline(at);
        assert!(at <= Time::from_secs_f64(8.2));
    }
    assert_eq!(a.poll_event(), Some(Event::Down { reason: DownReason::Silent }));
}

#[test]
fn a_peer_that_talks_and_is_talked_to_is_not_pinged() {
    let mut a = Session::new(LinkConfig::default(), Time::ZERO);
    a.handle_deadline(Time::ZERO);
    a.poll_transmit();
    for tenth in 1..100 {
        let now = Time::from_secs_f64(f64::from(tenth) / 10.0);
        a.handle_frame(now, Frame::Unknown { kind: 99 }).unwrap();
        a.send(Channel::Overlay, vec![1]);
        assert!(matches!(a.poll_transmit(), Some(Frame::Message { .. })));
        a.handle_deadline(now);
        assert_eq!(a.poll_transmit(), None);
    }
}

#[test]
fn a_peer_that_only_listens_says_that_it_lives() {
    let mut a = Session::new(LinkConfig::default(), Time::ZERO);
    a.handle_deadline(Time::ZERO);
    a.poll_transmit();
    let mut pings = 0;
    for tenth in 1..100 {
        let now = Time::from_secs_f64(f64::from(tenth) / 10.0);
        a.heard(now);
        a.handle_deadline(now);
        pings += usize::from(a.poll_transmit().is_some());
    }
    assert!((2..=6).contains(&pings), "{pings} pings in 10 s of listening");
}

#[test]
fn an_aborted_block_leaves_the_link_usable() {
    let (mut a, mut b) = (session(), session());
    assert!(a.try_send_block(3, 40_000, vec![]));
    for _ in 0..2 {
        let frame = a.poll_transmit().unwrap();
        b.handle_frame(Time::ZERO, frame).unwrap();
    }
    a.abort_block();
    a.set_pipe_unsent(Time::ZERO, 0);
    assert!(a.try_send_block(4, 10, vec![]));
    let events = pump(&mut a, &mut b);
    assert!(events.contains(&Event::BlockAborted { block: 3 }));
    assert!(events.contains(&Event::Fragment { block: 4, offset: 0, len: 10, last: true }));
}

#[test]
fn frames_that_break_the_order_of_a_block_break_the_link() {
    let start = || Frame::BlockStart { block: 1, len: 10, header: vec![], proof: vec![] };
    let mut a = session();
    assert_eq!(
        a.handle_frame(Time::ZERO, Frame::Fragment { len: 1 }),
        Err(SessionError::StrayFragment)
    );
    assert!(a.is_down());
    let mut a = session();
    a.handle_frame(Time::ZERO, start()).unwrap();
    assert_eq!(a.handle_frame(Time::ZERO, start()), Err(SessionError::BlockInsideBlock));
    let mut a = session();
    a.handle_frame(Time::ZERO, start()).unwrap();
    assert!(a.handle_frame(Time::ZERO, Frame::Fragment { len: 11 }).is_err());
}

#[test]
fn closing_flushes_what_is_queued_and_says_good_bye() {
    let (mut a, mut b) = (session(), session());
    a.send(Channel::Overlay, vec![1]);
    a.close();
    assert!(!a.is_flushed());
    let events = pump(&mut a, &mut b);
    assert_eq!(events.len(), 2);
    assert_eq!(events[1], Event::Down { reason: DownReason::Remote });
    assert!(a.is_flushed());
}

#[test]
fn a_control_queue_that_nobody_reads_is_bounded() {
    let mut a = session();
    for _ in 0..100 {
        a.send(Channel::Overlay, vec![0; MESSAGE_LEN_MAX]);
    }
    assert!(a.is_down());
    assert!(a.control_bytes <= 4 * 1024 * 1024 + MESSAGE_LEN_MAX + 1024);
}

#[test]
fn a_far_side_that_pings_and_does_not_read_is_given_up() {
    let mut a = session();
    for nonce in 0..1_000_000 {
        a.handle_frame(Time::ZERO, Frame::Ping { nonce }).unwrap();
    }
    assert!(a.is_down() && a.control.len() < 100_000);
}
