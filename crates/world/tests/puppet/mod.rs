//! A member that does what a test tells it to and writes down what happens to it.

use anabranch_proto::id::PeerInfo;
use anabranch_proto::overlay::{Ctx, Holdings, Input, Overlay, Setup, Stats};
use anabranch_proto::time::Time;
use std::sync::{Arc, Mutex};

/// What happened: the member's own time, its name, the input.
pub(crate) type Diary = Arc<Mutex<Vec<(Time, String, Input)>>>;

/// What a member does with an input; the last argument is the deadline it may set.
pub(crate) type Act = fn(&Setup, &mut Ctx<'_>, &Input, &mut Option<Time>);

pub(crate) struct Puppet {
    setup: Setup,
    act: Act,
    diary: Diary,
    deadline: Option<Time>,
    stats: Stats,
}

/// A factory of puppets that all do `act` and write into `diary`.
pub(crate) fn puppets(
    act: Act,
    diary: &Diary,
) -> impl Fn(Setup) -> Box<dyn Overlay + Send> + Send + 'static {
    let diary = diary.clone();
    move |setup| {
        let (diary, stats) = (diary.clone(), Stats::default());
        Box::new(Puppet { setup, act, diary, deadline: None, stats })
    }
}

impl Overlay for Puppet {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        let name = self.setup.me.id.to_string();
        if input == Input::Deadline {
            self.deadline = None;
        }
        (self.act)(&self.setup, ctx, &input, &mut self.deadline);
        self.diary.lock().expect("no writer panics").push((ctx.now, name, input));
    }
    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
    fn stats(&self) -> &Stats {
        &self.stats
    }
    fn check_invariants(&self, _: &Holdings) -> Result<(), String> {
        Ok(())
    }
    fn contacts(&self) -> Vec<PeerInfo> {
        self.setup.bootstrap.clone()
    }
}

/// Entries of `host` that `is` picks, with times in milliseconds.
pub(crate) fn of(diary: &Diary, host: &str, is: impl Fn(&Input) -> bool) -> Vec<(f64, Input)> {
    let name = anabranch_proto::id::PeerId::of_name(host).to_string();
    let entries = diary.lock().expect("no writer panics");
    let picked = entries.iter().filter(|(_, who, input)| *who == name && is(input));
    picked.map(|(at, _, input)| (at.as_secs_f64() * 1e3, input.clone())).collect()
}
