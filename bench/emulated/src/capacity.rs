//! How much the emulator carries on this machine, and how exactly.

use crate::programs::{emulate, output, server, start, topology};
use anabranch_world::emu::Report;
use std::time::Instant;

const SECONDS: &str = "10";
/// The pings' class comes first, so that what they meet is the emulator and no queue.
const DUMBBELL: &str = "\
congestion = \"cubic\"
[generate]
kind = \"dumbbell\"
pairs = 2
[generate.bottleneck]
rate = \"550mbit\"
delay = \"8ms\"
[generate.bottleneck.queue]
kind = \"priority\"
map = { ef = 0, other = 1 }
classes = [
  { kind = \"drop-tail\", limit = \"20ms\" },
  { kind = \"drop-tail\", limit = \"50ms\" },
]
";
const MESH: &str = "\
[generate]
kind = \"mesh\"
nodes = 64
core = { loss = [0, 0] }
";

pub(crate) fn run() -> Result<(), String> {
    dumbbell()?;
    mesh()
}

/// 500 Mb/s of packets of 1500 bytes, and pings beside them.
fn dumbbell() -> Result<(), String> {
    let topology = topology(DUMBBELL)?;
    let emulator = emulate(&topology, "cap")?;
    let receiver = server(&emulator, 2)?;
    let words = ["iperf3", "-u", "-l", "1472", "-b", "500M", "-t", SECONDS, "-c", "right1"];
    let sender = start(&emulator, 0, &words)?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let started = Instant::now();
    let pings = start(&emulator, 1, &["ping", "-nQ", "0xb8", "-i", "0.01", "-c", "700", "right2"])?;
    let pings = output(pings)?;
    let pinged = started.elapsed().as_secs_f64();
    output(sender)?;
    output(receiver)?;
    let report = emulator.finish().map_err(|error| error.to_string())?;
    let mut times = round_trips(&pings);
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let link = report.links.iter().find(|link| link.from == "left" && link.to == "right");
    let carried = link.and_then(|link| link.classes.get(1)).map_or(0, |class| class.arrived.bytes);
    let offered = link.and_then(|link| link.classes.get(1)).map_or(0, |class| class.offered.bytes);
    println!("dumbbell, 500 Mb/s of 1500-byte packets for {SECONDS} s");
    println!(
        "  carried                      {:.0} of {:.0} MB offered",
        mega(carried),
        mega(offered)
    );
    println!(
        "  {} pings in {pinged:.1} s, ms    {:.2} p50, {:.2} p99, {:.2} max over 20 and the wire's time",
        times.len(),
        at(0.5) - 20.0,
        at(0.99) - 20.0,
        at(1.0 - 1e-9) - 20.0
    );
    print(&report);
    Ok(())
}

/// 64 hosts: the time to make and remove them, and a ping from each to another.
fn mesh() -> Result<(), String> {
    let topology = topology(MESH)?;
    let started = Instant::now();
    let emulator = emulate(&topology, "mesh")?;
    let made = started.elapsed();
    let hosts: Vec<String> = emulator.hosts().iter().map(|host| host.name.clone()).collect();
    let ping = |from: usize| {
        let to = &hosts[(from + 7) % hosts.len()];
        start(&emulator, from, &["ping", "-nq", "-s", "1400", "-i", "0.05", "-c", "100", to])
    };
    let pings: Result<Vec<_>, String> = (0..hosts.len()).map(ping).collect();
    let mut received = 0;
    for ping in pings? {
        received += count_received(&output(ping)?);
    }
    let ending = Instant::now();
    let report = emulator.finish().map_err(|error| error.to_string())?;
    println!("mesh of {} hosts, {} links", hosts.len(), report.links.len());
    println!(
        "  made in {:.2} s, removed in {:.2} s",
        made.as_secs_f64(),
        ending.elapsed().as_secs_f64()
    );
    println!("  answered pings               {received} of {}", 100 * hosts.len());
    print(&report);
    Ok(())
}

fn print(report: &Report) {
    let (emulator, late) = (&report.emulator, &report.emulator.lateness_us);
    println!("  packets                      {}", emulator.packets_delivered);
    println!(
        "  late, ms                     {:.3} p50, {:.3} p99, {:.3} p99.9, {:.3} max",
        late.p50 / 1e3,
        late.p99 / 1e3,
        late.p999 / 1e3,
        late.max / 1e3
    );
    println!("  share over 1 ms late         {:.4}%", emulator.late_share * 100.0);
    println!(
        "  processor                    {:.0}% of one; all were {:.0}% busy",
        emulator.processor_share * 100.0,
        emulator.machine_busy_share * 100.0
    );
    println!(
        "  valid                        {} {}",
        report.valid,
        report.invalid_because.join("; ")
    );
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The times of `ping`, in milliseconds.
fn round_trips(text: &str) -> Vec<f64> {
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    text.lines().filter_map(time).collect()
}

/// The second number of `100 packets transmitted, 97 received, …`.
fn count_received(text: &str) -> u32 {
    let line = text.lines().find(|line| line.contains(" received"));
    let number = line.and_then(|line| line.split(", ").nth(1)?.split(' ').next()?.parse().ok());
    number.unwrap_or(0)
}
