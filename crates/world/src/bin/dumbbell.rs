//! Bulk TCP flows over a dumbbell, in one line of key=value pairs: our side of the comparison with
//! ns-3 (`./x bench ns3`; the other side is `bench/ns3/dumbbell.cc`). `secs` is processor time.
//!
//! `cargo run -p anabranch-world --release --bin dumbbell -- --congestion cubic --flows 10`

use anabranch_proto::time::{Duration, Time};
use anabranch_world::flags::Flags;
use anabranch_world::flows::{Bulk, Config, Flows, Group, TcpSpec, TransportSpec, jain};
use anabranch_world::topology::file::queue::QueueForm;
use anabranch_world::topology::file::way::{Way, Ways};
use anabranch_world::topology::generate::Dumbbell;
use anabranch_world::topology::{LinkIx, NodeIx};
use anabranch_world::units::{Rate, mbit, ms, us};
use std::process::ExitCode;

const USAGE: &str = "usage: dumbbell [--congestion newreno|cubic (newreno)] [--flows N (10)]
    [--buffer PACKETS (1000)] [--mbit R (100)] [--rtt-ms T (40)] [--seconds VIRTUAL (60)]
    [--warm-up SECONDS (10)]";

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Seconds that this process has been on a processor.
fn processor_time() -> Result<f64, String> {
    let path = "/proc/self/schedstat";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let nanos = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| format!("{path} is not as expected"))
}

fn run() -> Result<String, String> {
    let mut flags = Flags::from_env()?;
    let congestion = flags.take("congestion")?.unwrap_or_else(|| "newreno".to_owned());
    let count: u32 = flags.take("flows")?.unwrap_or(10);
    let buffer = flags.take("buffer")?.unwrap_or(1000);
    let rate = mbit(flags.take("mbit")?.unwrap_or(100));
    let rtt_ms: u64 = flags.take("rtt-ms")?.unwrap_or(40);
    let seconds: u64 = flags.take("seconds")?.unwrap_or(60);
    let warm_up: u64 = flags.take("warm-up")?.unwrap_or(10);
    flags.finish()?;
    if count == 0 || rtt_ms < 4 || warm_up >= seconds {
        return Err("needs a flow, 4 ms of round trip, and more time than warm-up".to_owned());
    }
    let fast = Rate::bytes_per_sec(rate.bytes() * 4);
    let access = Way::new(fast, ms(1)).queue(QueueForm::packets(100_000));
    let middle = Way::new(rate, us(rtt_ms * 500 - 2000)).queue(QueueForm::packets(buffer));
    let topology = Dumbbell {
        pairs: count,
        bottleneck: Ways::same(middle),
        access: Ways::same(access),
        extra_delays: Vec::new(),
    }
    .build();
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let mut flows =
        Flows::new(&topology, Config { seed: 1, warm_up: at(warm_up), ..Config::default() });
    let mut tcp = TcpSpec::default();
    tcp.config.sending.mss = 1448;
    let transport = TransportSpec::named(&congestion, tcp)
        .ok_or_else(|| format!("there is no congestion control {congestion:?}"))?;
    let group = flows.add_group(Group { name: "bulk".into(), transport, is_sampled: false });
    // The hosts come first: left1, left2, …, then right1, right2, ….
    let pairs = (0..count).map(|n| (NodeIx(n), NodeIx(count + n))).collect();
    let bulk = Bulk { count, pairs, start: Time::ZERO, stagger: ms(7), stop: None, bytes: None };
    flows.add_bulk(group, &bulk);
    let before = processor_time()?;
    flows.run_until(at(seconds));
    let took = processor_time()? - before;
    let delivered = |record: &anabranch_world::flows::Record| {
        (record.delivered - record.delivered_before) as f64
    };
    let rates: Vec<f64> = flows.records_of(group).map(delivered).collect();
    let goodput = rates.iter().sum::<f64>() * 8.0 / 1e6 / (seconds - warm_up) as f64;
    let drops = flows.network().stats(LinkIx(0)).dropped_all().packets;
    let hops = flows.network().hops();
    Ok(format!(
        "goodput_mbit={goodput:.3} jain={:.4} drops={drops} hops={hops} secs={took:.4}",
        jain(rates)
    ))
}
