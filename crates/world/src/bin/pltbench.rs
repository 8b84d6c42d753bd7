//! PLT on one bottleneck: goodput over random loss, what TCP beside it keeps, and when PLT-Shutdown
//! strikes.
//!
//! `cargo run -p anabranch-world --release --bin pltbench -- --loss 0,0.001,0.01,0.03,0.05,0.1`

use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::congestion::Choice;
use anabranch_proto::transport::plt::{self, Buffer, shutdown};
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::flows::{
    Bulk, Config, Flows, Group, GroupIx, PltSpec, TcpSpec, TransportSpec,
};
use anabranch_world::topology::file::queue::{LimitForm, QueueForm};
use anabranch_world::topology::file::way::{Way, Ways};
use anabranch_world::topology::generate::Dumbbell;
use anabranch_world::topology::{ClassMap, LinkIx, Loss, LossModel, NodeIx, Side, Topology};
use anabranch_world::units::{Rate, mbit, ms, us};
use std::process::ExitCode;

const USAGE: &str = "usage: pltbench [--loss P,P,.. (0)] [--mode default|thesis|unlimited|short|
    scavenger (default)] [--hcm newreno|cubic|fast (newreno)] [--plt N (1)] [--tcp N (0)]
    [--tcp-control newreno|cubic (newreno)] [--queue push-out|per-class|fifo (push-out)]
    [--buffer BYTES (300000)] [--mbit R (155)] [--rtt-ms T (100)] [--seconds S (60)]
    [--warm-up S (10)] [--seeds N (1)] [--window BDPS] [--detector order|losses|never|at-once]
    [--trace-ms T] (windows of the first flow) [--each] [--weight W] [--burst PACKETS]";

struct Options {
    losses: Vec<f64>,
    mode: String,
    hcm: String,
    plt: u32,
    tcp: u32,
    tcp_control: String,
    queue: String,
    buffer: u64,
    rate: Rate,
    rtt_ms: u64,
    seconds: u64,
    warm_up: u64,
    seeds: u64,
    window: Option<f64>,
    detector: Option<String>,
    trace: Option<u64>,
    each: bool,
    weight: Option<f64>,
    burst: Option<u32>,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, String> {
    let mut flags = Flags::from_env()?;
    let mut text = |name: &str, default: &str| -> Result<String, String> {
        Ok(flags.take(name)?.unwrap_or_else(|| default.to_owned()))
    };
    let losses = text("loss", "0")?;
    let losses = losses.split(',').map(str::parse).collect::<Result<_, _>>();
    let (mode, hcm) = (text("mode", "default")?, text("hcm", "newreno")?);
    let (tcp_control, queue) = (text("tcp-control", "newreno")?, text("queue", "push-out")?);
    let options = Options {
        losses: losses.map_err(|_| "--loss: numbers with commas between")?,
        mode,
        hcm,
        plt: flags.take("plt")?.unwrap_or(1),
        tcp: flags.take("tcp")?.unwrap_or(0),
        tcp_control,
        queue,
        buffer: flags.take("buffer")?.unwrap_or(300_000),
        rate: mbit(flags.take("mbit")?.unwrap_or(155)),
        rtt_ms: flags.take("rtt-ms")?.unwrap_or(100),
        seconds: flags.take("seconds")?.unwrap_or(60),
        warm_up: flags.take("warm-up")?.unwrap_or(10),
        seeds: flags.take("seeds")?.unwrap_or(1),
        window: flags.take("window")?,
        detector: flags.take("detector")?,
        trace: flags.take("trace-ms")?,
        each: flags.take_switch("each"),
        weight: flags.take("weight")?,
        burst: flags.take("burst")?,
    };
    flags.finish()?;
    match options.rtt_ms > 4 && options.warm_up < options.seconds && options.plt + options.tcp > 0 {
        true => Ok(options),
        false => Err("needs a flow, 5 ms of round trip, and more time than warm-up".into()),
    }
}

fn run(options: &Options) -> Result<(), String> {
    println!(
        "loss      share  (seeds)  plt Mb/s  tcp Mb/s  util   resent  low share  low lost  mu     \
         LCM silenced (median, last)"
    );
    for &loss in &options.losses {
        let (mut shares, mut offs) = (Vec::new(), Vec::new());
        let mut line = String::new();
        let begun = wall_clock();
        for seed in 1..=options.seeds {
            let run = measure(options, loss, seed)?;
            shares.push(run.share);
            offs.extend(run.off);
            line = run.line;
        }
        shares.sort_by(f64::total_cmp);
        offs.sort_by(f64::total_cmp);
        let median = shares[shares.len() / 2];
        let spread = format!("{:.3}..{:.3}", shares[0], shares[shares.len() - 1]);
        let off = match offs.as_slice() {
            [] => "never".to_owned(),
            [.., last] => format!("{:.2} s, {last:.2} s", offs[offs.len() / 2]),
        };
        let (count, seeds) = (offs.len(), options.seeds);
        let took = begun.elapsed().as_secs_f64();
        println!("{loss:<8}  {median:.4} {spread} {line} {count} of {seeds}: {off} ({took:.1} s)");
    }
    Ok(())
}

/// What came of a run.
struct Run {
    /// Goodput of all as a share of what can arrive of the bottleneck's payload.
    share: f64,
    /// When the LCM was first silenced, seconds.
    off: Option<f64>,
    /// Further numbers.
    line: String,
}

fn measure(options: &Options, loss: f64, seed: u64) -> Result<Run, String> {
    let topology = topology(options, loss)?;
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let sample = options.trace.map(ms);
    let config = Config { seed, warm_up: at(options.warm_up), sample, ..Config::default() };
    let mut flows = Flows::new(&topology, config);
    let spec = spec(options)?;
    let payload = f64::from(spec.segment()) / f64::from(spec.segment() + 64);
    let plt = group(&mut flows, "plt", TransportSpec::Plt(spec), options, 0);
    let mut tcp_spec = TcpSpec::default();
    tcp_spec.config.sending.mss = spec.segment();
    tcp_spec.config.header_len = spec.config.hcm.header_len;
    let tcp =
        TransportSpec::named(&options.tcp_control, tcp_spec).ok_or("no such --tcp-control")?;
    let tcp = group(&mut flows, "tcp", tcp, options, options.plt);
    flows.run_until(at(options.seconds));
    if options.each {
        for (flow, record) in flows.records().iter().enumerate() {
            let p = record.source;
            println!(
                "  {flow} {:.2} Mb/s {p:?}",
                flows.goodput(anabranch_world::flows::FlowIx(flow as u32)) * 8.0 / 1e6
            );
        }
    }
    if options.trace.is_some() {
        trace(&flows);
    }
    Ok(report(options, loss, payload, &flows, (plt, tcp)))
}

fn report(
    options: &Options,
    loss: f64,
    payload: f64,
    flows: &Flows,
    (plt, tcp): (GroupIx, GroupIx),
) -> Run {
    let mbits = |group| flows.goodput_of(group) * 8.0 / 1e6;
    let possible = options.rate.as_f64() * payload * (1.0 - loss);
    let share = (flows.goodput_of(plt) + flows.goodput_of(tcp)) / possible;
    let sources: Vec<_> = flows.records_of(plt).map(|record| record.source).collect();
    let sum = |of: fn(&anabranch_proto::transport::Probe) -> u64| {
        sources.iter().map(of).sum::<u64>().max(1) as f64
    };
    let (sent, low) = (sum(|p| p.sent), sum(|p| p.low_sent));
    let off = sources.iter().filter_map(|p| p.low_off_at).min();
    let off = off.map(|at| at.as_secs_f64());
    let line = format!(
        "{:8.2} {:8.2}  {:.4} {:.4}  {:.4}  {:.4}  {:.4}",
        mbits(plt),
        mbits(tcp),
        flows.utilization(LinkIx(0)),
        sum(|p| p.resent) / sent,
        low / (sent + sum(|p| p.resent)),
        sum(|p| p.low_lost) / low,
        sources.first().map_or(0.0, |p| p.low_mu),
    );
    Run { share, off, line }
}

fn trace(flows: &Flows) {
    for sample in flows.flow_samples().iter().filter(|sample| sample.flow.0 == 0) {
        let p = &sample.source;
        println!(
            "{:.3} high {} low {} flight {} sent {} acked {} span {} rtt {:.1} rec {} to {} mu {:.3} lost {} lowsent {}",
            sample.at.as_secs_f64(),
            p.window,
            p.low_window,
            p.flight,
            p.sent,
            p.acked,
            p.sent - p.acked,
            p.rtt.as_secs_f64() * 1e3,
            p.recoveries,
            p.timeouts,
            p.low_mu,
            p.low_lost,
            p.low_sent,
        );
    }
}

fn group(
    flows: &mut Flows,
    name: &str,
    transport: TransportSpec,
    options: &Options,
    first: u32,
) -> GroupIx {
    let all = options.plt + options.tcp;
    let count = if first == 0 { options.plt } else { options.tcp };
    let count = if name == "tcp" { options.tcp } else { count };
    let group = flows.add_group(Group { name: name.into(), transport, is_sampled: name == "plt" });
    let pairs: Vec<_> =
        (first..first + count.max(1)).map(|n| (NodeIx(n % all), NodeIx(all + n % all))).collect();
    let bulk = Bulk { count, pairs, start: Time::ZERO, stagger: ms(37), stop: None, bytes: None };
    flows.add_bulk(group, &bulk);
    group
}

fn spec(options: &Options) -> Result<PltSpec, String> {
    let bdp = options.rate.bytes() * options.rtt_ms / 1000;
    let congestion = Choice::named(&options.hcm).ok_or("no such --hcm")?;
    let mut spec = match options.mode.as_str() {
        "default" => PltSpec::default(),
        "thesis" => PltSpec::thesis(bdp),
        "unlimited" => {
            PltSpec { config: PltSpec::thesis(bdp).config.unlimited(bdp), ..PltSpec::thesis(bdp) }
        }
        "short" => PltSpec { config: plt::Config::default().short(), ..PltSpec::default() },
        "scavenger" => PltSpec { config: plt::Config::default().scavenger(), ..PltSpec::default() },
        other => return Err(format!("there is no mode {other:?}")),
    };
    if let Some(bdps) = options.window {
        spec.config.buffer = Buffer::Fixed((bdps * bdp as f64) as u64);
    }
    if let Some(weight) = options.weight {
        spec.config.lcm.window.weight = weight;
    }
    if let Some(burst) = options.burst {
        spec.config.lcm.pacer.burst = burst;
    }
    spec.config.shutdown = match options.detector.as_deref() {
        None => spec.config.shutdown,
        Some("order") => shutdown::Config::default(),
        Some("losses") => shutdown::Config::as_in_thesis(),
        // After its first loss the HCM is alone: a TCP to compare with.
        Some("at-once") => shutdown::Config {
            detector: shutdown::Detector::Losses { period: Duration::ZERO, threshold: -1.0 },
            ..shutdown::Config::as_in_thesis()
        },
        Some("never") => {
            shutdown::Config { detector: shutdown::Detector::Never, ..shutdown::Config::default() }
        }
        Some(other) => return Err(format!("there is no detector {other:?}")),
    };
    Ok(PltSpec { congestion, ..spec })
}

fn topology(options: &Options, loss: f64) -> Result<Topology, String> {
    let limit = LimitForm::Bytes(options.buffer);
    let map = ClassMap { entries: vec![(1, 1)], other: 0 };
    let queue = match options.queue.as_str() {
        "push-out" => QueueForm::PushOut { limit, classes: 2, map },
        "per-class" => QueueForm::Priority { classes: vec![QueueForm::DropTail(limit); 2], map },
        "fifo" => QueueForm::DropTail(limit),
        other => return Err(format!("there is no queue {other:?}")),
    };
    let fast = Rate::bytes_per_sec(options.rate.bytes() * 4);
    let access = Way::new(fast, ms(1)).queue(QueueForm::packets(100_000));
    let back = Way::new(options.rate, us(options.rtt_ms * 500 - 2000)).queue(queue);
    let mut there = back.clone();
    there.loss = (loss > 0.0)
        .then_some(Loss { model: LossModel::Independent { probability: loss }, side: Side::After });
    Ok(Dumbbell {
        pairs: options.plt + options.tcp,
        bottleneck: Ways { there, back },
        access: Ways::same(access),
        extra_delays: Vec::new(),
    }
    .build())
}
