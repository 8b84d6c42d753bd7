//! How busy the machine was beside the emulator: what slows the programs under test, too.

/// Ticks since the machine started, of all processors together, from `/proc/stat`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Ticks {
    all: u64,
    idle: u64,
    /// Taken by the host of a virtual machine.
    stolen: u64,
}

/// Shares of the processors' time, 0 to 1.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Shares {
    pub(super) busy: f64,
    pub(super) stolen: f64,
}

/// The counters now; zeros where the kernel does not tell.
pub(super) fn ticks() -> Ticks {
    parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
}

/// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`, where guest
/// time is part of user time (proc_stat(5)).
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let numbers: &[u64; 8] = numbers.first_chunk()?;
    Some(Ticks { all: numbers.iter().sum(), idle: numbers[3] + numbers[4], stolen: numbers[7] })
}

/// What became of the time in between.
pub(super) fn shares(from: Ticks, to: Ticks) -> Shares {
    let all = to.all.saturating_sub(from.all).max(1) as f64;
    let idle = to.idle.saturating_sub(from.idle) as f64;
    let stolen = to.stolen.saturating_sub(from.stolen) as f64;
    Shares { busy: (1.0 - idle / all).clamp(0.0, 1.0), stolen: stolen / all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_was_not_idle_and_stolen_time_is_told_apart() {
        let from = parse("cpu  100 0 0 800 100 0 0 0 0 0\ncpu0 1 2\n").unwrap();
        let to = parse("cpu  160 0 10 810 110 0 0 10 50 0\n").unwrap();
        assert_eq!(shares(from, to), Shares { busy: 0.8, stolen: 0.1 });
        assert_eq!(parse("intr 7"), None);
    }
}
