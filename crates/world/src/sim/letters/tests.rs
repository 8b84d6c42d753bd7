use super::*;
use crate::sim::{Config, Fault, HostId, HostSpec, TraceHash, Wire};
use crate::units::{mbit, ms};
use anabranch_proto::id::{Contact, LinkClass, PeerId, PeerInfo};
use anabranch_proto::overlay::{Command, Ctx, Holdings, Input, Output, Overlay, Setup, Stats};
use anabranch_proto::random::below;
use anabranch_proto::time::Duration;

const HOSTS: u32 = 12;

/// Speaks on all its links at odd times, and answers some of what it hears at once.
struct Talker {
    neighbour: PeerInfo,
    links: Vec<LinkId>,
    at: Option<Time>,
    stats: Stats,
}

impl Overlay for Talker {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        match input {
            Input::Start => {
                let (peer, class) = (self.neighbour.clone(), LinkClass::Reliable);
                ctx.out.push(Output::Connect { peer, class });
                self.at = Some(ctx.now + ms(1));
            }
            Input::LinkUp { link, .. } => self.links.push(link),
            Input::LinkDown { link, .. } => {
                self.links.retain(|other| *other != link);
                let (peer, class) = (self.neighbour.clone(), LinkClass::Reliable);
                ctx.out.push(Output::Connect { peer, class });
            }
            Input::Deadline => {
                self.links.iter().for_each(|link| ctx.send(*link, vec![1; 20]));
                self.links.iter().for_each(|link| ctx.send(*link, vec![2; 2]));
                self.at = Some(ctx.now + Duration::from_micros(100 + below(ctx.rng, 900) as u64));
            }
            Input::Message { link, bytes } if bytes.len() == 20 && below(ctx.rng, 3) == 0 => {
                ctx.send(link, vec![3; 5]);
                if below(ctx.rng, 100) == 0 {
                    ctx.out.push(Output::Disconnect { link });
                }
            }
            Input::Command(Command::Leave) => {
                self.at = None;
                ctx.out.push(Output::Left);
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.at
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn check_invariants(&self, _: &Holdings) -> Result<(), String> {
        Ok(())
    }

    fn contacts(&self) -> Vec<PeerInfo> {
        Vec::new()
    }
}

fn info(number: u32) -> PeerInfo {
    let contact = Contact { addresses: number.to_le_bytes().to_vec(), reachable: true };
    PeerInfo { id: PeerId::of_name(&format!("h{number}")), contact }
}

/// A run in which links are cut and healed, delays become shorter than what waits, hosts crash and leave.
fn run(seed: u64, waiting_max: usize) -> (TraceHash, u64) {
    let mut config = Config::new(seed, 1, 1);
    config.wire = Wire::Latency;
    let factory = |setup: Setup| {
        let me = (0..HOSTS).find(|&number| info(number).id == setup.me.id).unwrap_or(0);
        let neighbour = info((me + 1) % HOSTS);
        let (links, stats) = (Vec::new(), Stats::default());
        Box::new(Talker { neighbour, links, at: None, stats }) as Box<dyn Overlay + Send>
    };
    let mut sim = Sim::new(config, ms(3), Box::new(factory));
    sim.letters.waiting_max = waiting_max;
    for number in 0..HOSTS {
        let (name, rate) = (format!("h{number}"), mbit(1));
        sim.add_host(match number {
            0 => HostSpec::source(name, rate, rate),
            _ => HostSpec::receiver(name, rate, rate),
        });
    }
    let id = |number: u32| HostId(number);
    for (at, fault) in [
        (100, Fault::Cut(id(1), id(2))),
        (150, Fault::Delay(id(3), id(4), Duration::from_micros(20))),
        (180, Fault::Heal(id(1), id(2))),
        (200, Fault::Crash(id(5))),
        (210, Fault::Kill(id(7))),
        (220, Fault::Leave(id(9))),
        (300, Fault::Delay(id(3), id(4), Duration::ZERO)),
    ] {
        sim.schedule(Time::ZERO + ms(at), fault);
    }
    sim.run(Time::ZERO + ms(500), |_| false).unwrap();
    (sim.trace_hash(), sim.events())
}

#[test]
fn a_run_in_which_messages_wait_is_the_run_in_which_they_do_not() {
    for seed in 1..6 {
        let at_once = run(seed, 0);
        assert!(at_once.1 > 10_000, "only {} events", at_once.1);
        for waiting in [1, WAITING, 50] {
            assert_eq!(run(seed, waiting), at_once, "seed {seed}, {waiting} wait");
        }
    }
}
