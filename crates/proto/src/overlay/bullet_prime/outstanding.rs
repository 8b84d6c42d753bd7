//! How many blocks to have outstanding at one sender: the XCP-derived controller of
//! Bullet §4.3.3.2, Fig. 7, whose aim is exactly one block in front of the sender's socket.
//!
//! With each block the sender reports `in_front`, how many requested blocks stood before this
//! request when it came, and `wasted`: negative, how long the pipe stood idle before it; positive,
//! how long it waited. α = 0.4 weighs time, β = 0.226 the queue.
//!
//! Deviations:
//! - Fig. 7 as printed never backs off: the second condition is read as `wasted > 0 && in_front > 1`
//!   (the text: "we take care not to double count").
//! - With one block in front and any wait the number stays: that is the aim. The printed formula
//!   would subtract 0.4 there. With none in front, only what is missing of one service time counts.
//! - The number grows only when it was the limit: a sender with nothing more to offer also idles.
//! - It never shrinks below what the path holds, rounded, and one block at the sender. `in_front` as
//!   [`super::InFront::Uplink`] counts it includes requests that wait for other receivers' slow
//!   pipes; on lossy paths they alone drove every number to 1, and pipes idled a round trip per block.

use crate::id::BlockIndex;

const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;
/// The block at the sender, and a half to round by.
const AT_SENDER: f64 = 1.5;

/// What came with a block.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Requested blocks that stood before this one's request when it came.
    pub in_front: u32,
    /// Seconds: below zero the pipe idled, above zero the request waited.
    pub wasted: f64,
    /// Bytes per second this sender delivers.
    pub bandwidth: f64,
    /// Seconds of a round trip to the sender; 0 when not known.
    pub rtt: f64,
    /// Bytes of a block.
    pub block_len: f64,
    /// Requests outstanding at this sender after this block.
    pub requested: u32,
    /// Whether more would have been asked for had the number been higher.
    pub limited: bool,
}

/// By how many blocks the outstanding requests should change: Fig. 7 as the text means it.
pub fn change(sample: &Sample) -> f64 {
    let blocks_wasted = sample.wasted * sample.bandwidth / sample.block_len;
    match (sample.wasted > 0.0, sample.in_front) {
        (false, _) => -ALPHA * blocks_wasted,
        (true, 0) => ALPHA * (1.0 - blocks_wasted).max(0.0),
        (true, 1) => 0.0,
        (true, in_front) => -BETA * f64::from(in_front - 1),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// No change is being waited for.
    None,
    /// The next request will be marked.
    Next,
    /// Changes wait until this block comes.
    Block(BlockIndex),
}

/// The controller of one sender.
#[derive(Clone, Debug)]
pub struct Outstanding {
    desired: f64,
    max: u32,
    adapt: bool,
    mark: Mark,
}

impl Outstanding {
    /// Starts at `initial`, never goes beyond `max`; stays there unless it shall `adapt`.
    pub fn new(initial: u32, max: u32, adapt: bool) -> Outstanding {
        Outstanding { desired: f64::from(initial.clamp(1, max)), max, adapt, mark: Mark::None }
    }

    /// How many requests may be outstanding; at least 1.
    pub fn limit(&self) -> usize {
        self.desired as usize
    }

    /// A request for `block` goes out: it may be the marked one.
    pub fn on_request(&mut self, block: BlockIndex) {
        if self.mark == Mark::Next {
            self.mark = Mark::Block(block);
        }
    }

    /// A request for `block` was lost or given back: if it was the marked one, the next is.
    pub fn on_lost(&mut self, block: BlockIndex) {
        if self.mark == Mark::Block(block) {
            self.mark = Mark::Next;
        }
    }

    /// A block came from the sender (ManageOutstanding).
    pub fn on_block(&mut self, block: BlockIndex, sample: &Sample) {
        if self.mark == Mark::Block(block) {
            self.mark = Mark::None;
        }
        if !self.adapt || self.mark != Mark::None {
            return;
        }
        let change = change(sample);
        let base = f64::from(sample.requested + 1);
        let desired = if change > 0.0 && sample.limited {
            (base + change).ceil().max(self.desired)
        } else if change < 0.0 {
            (base + change).min(self.desired)
        } else {
            self.desired
        };
        let on_path = sample.bandwidth * sample.rtt / sample.block_len;
        let desired = desired.max(on_path + AT_SENDER).clamp(1.0, f64::from(self.max));
        if desired as usize != self.limit() {
            self.mark = Mark::Next;
        }
        self.desired = desired;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A sender with a FIFO in front of a socket that serves a block in `service` seconds and
    /// always has one in it; requests take `delay` seconds to come and blocks as long to go.
    struct Pipe {
        service: f64,
        delay: f64,
        busy_until: f64,
        /// (block, arrived, in front)
        queue: VecDeque<(u32, f64, u32)>,
        on_the_way: VecDeque<(u32, f64)>,
    }

    struct Run {
        controller: Outstanding,
        outstanding: u32,
        in_front: Vec<u32>,
        limits: Vec<usize>,
    }

    /// Runs the controller against the pipe for `blocks` blocks; `service_of(n)` is the time the
    /// nth block takes.
    fn run(blocks: u32, delay: f64, service_of: impl Fn(u32) -> f64) -> Run {
        let mut run = Run {
            controller: Outstanding::new(3, 50, true),
            outstanding: 0,
            in_front: vec![],
            limits: vec![],
        };
        let mut pipe = Pipe {
            service: service_of(0),
            delay,
            busy_until: 0.0,
            queue: VecDeque::new(),
            on_the_way: VecDeque::new(),
        };
        let (mut now, mut next) = (0.0, 0);
        for served in 0..blocks {
            pipe.service = service_of(served);
            while (run.outstanding as usize) < run.controller.limit() {
                run.controller.on_request(next);
                pipe.on_the_way.push_back((next, now + pipe.delay));
                (next, run.outstanding) = (next + 1, run.outstanding + 1);
            }
            // Everything that reached the sender before its socket takes the next block queues.
            let admit = |pipe: &mut Pipe, until: f64| {
                while pipe.on_the_way.front().is_some_and(|(_, at)| *at <= until) {
                    let (block, at) = pipe.on_the_way.pop_front().unwrap();
                    let in_front = pipe.queue.len() as u32;
                    pipe.queue.push_back((block, at, in_front));
                }
            };
            let socket_free = pipe.busy_until;
            admit(&mut pipe, socket_free);
            if pipe.queue.is_empty() {
                let first = pipe.on_the_way.front().unwrap().1;
                admit(&mut pipe, first);
            }
            let (block, at, in_front) = pipe.queue.pop_front().unwrap();
            let taken = socket_free.max(at);
            let wasted = if at > socket_free { socket_free - at } else { taken - at };
            pipe.busy_until = taken + pipe.service;
            now = taken + pipe.service + pipe.delay;
            run.outstanding -= 1;
            run.in_front.push(in_front);
            run.controller.on_block(
                block,
                &Sample {
                    in_front,
                    wasted,
                    bandwidth: 1.0 / pipe.service,
                    rtt: 2.0 * delay,
                    block_len: 1.0,
                    requested: run.outstanding,
                    limited: true,
                },
            );
            run.limits.push(run.controller.limit());
        }
        run
    }

    fn sample(in_front: u32, wasted: f64) -> Sample {
        Sample {
            in_front,
            wasted,
            bandwidth: 10.0,
            rtt: 0.0,
            block_len: 1.0,
            requested: 4,
            limited: true,
        }
    }

    #[test]
    fn requests_of_others_in_front_do_not_empty_the_path() {
        let mut controller = Outstanding::new(3, 50, true);
        for block in 0..20 {
            controller.on_request(block);
            controller.on_block(block, &Sample { rtt: 0.42, ..sample(20, 1e-6) });
        }
        // 4.2 blocks on the path and one at the sender.
        assert_eq!(controller.limit(), 5);
    }

    #[test]
    fn the_fixed_point_is_exactly_one_block_in_front() {
        assert_eq!(change(&sample(1, 0.1)), 0.0);
        for delay in [0.0, 0.02, 0.1, 0.5] {
            let run = run(400, delay, |_| 0.1);
            let settled = &run.in_front[200..];
            let mean = settled.iter().sum::<u32>() as f64 / settled.len() as f64;
            assert!((0.9..=1.6).contains(&mean), "delay {delay}: mean {mean}");
            let limits = &run.limits[300..];
            assert!(limits.iter().all(|limit| *limit == limits[0]), "delay {delay}: {limits:?}");
        }
    }

    #[test]
    fn an_idle_pipe_raises_the_number_by_whole_blocks() {
        let mut controller = Outstanding::new(3, 50, true);
        controller.on_block(0, &sample(0, -0.2));
        // 4 outstanding + 1 + 0.4 × 2 blocks idled, rounded up.
        assert_eq!(controller.limit(), 6);
    }

    #[test]
    fn a_sender_that_slows_tenfold_sheds_its_outstanding_requests() {
        // A long path: many blocks must be outstanding to fill it.
        let run = run(700, 0.5, |served| if served < 400 { 0.05 } else { 0.5 });
        let (fast, slow) = (run.limits[399], *run.limits.last().unwrap());
        assert!(fast >= 18, "needed to fill the pipe: {fast}");
        assert!(slow <= 6, "still {slow} outstanding after the slow-down");
    }

    #[test]
    fn nothing_changes_between_a_change_and_its_marked_block() {
        let mut controller = Outstanding::new(3, 50, true);
        controller.on_block(0, &sample(0, -0.2));
        let limit = controller.limit();
        controller.on_request(7);
        controller.on_block(1, &sample(0, -1.0));
        assert_eq!(controller.limit(), limit);
        controller.on_block(7, &sample(0, -1.0));
        assert!(controller.limit() > limit);
    }

    #[test]
    fn a_sender_with_nothing_more_to_offer_does_not_raise_the_number() {
        let mut controller = Outstanding::new(3, 50, true);
        controller.on_block(0, &Sample { limited: false, requested: 0, ..sample(0, -9.0) });
        assert_eq!(controller.limit(), 3);
    }

    #[test]
    fn the_number_stays_within_one_and_its_maximum_whatever_a_sender_claims() {
        for (in_front, wasted) in [(u32::MAX, 1.0), (0, -1e12), (1, f64::NAN), (2, 1e300)] {
            let mut controller = Outstanding::new(3, 50, true);
            controller.on_block(0, &sample(in_front, wasted));
            assert!((1..=50).contains(&controller.limit()), "{in_front} {wasted}");
        }
    }
}
