//! The simulator's NewReno and CUBIC beside the kernel's reno and cubic: one flow over the same
//! topology, with the same losses by the number of the packet, in the simulator and through the
//! emulator.

use crate::programs::{emulate, output, server, start, topology};
use anabranch_proto::time::{Duration, Time};
use anabranch_world::flows::{Config, FlowSpec, Flows, Group, TcpSpec, TransportSpec};
use anabranch_world::topology::Topology;
use serde_json::Value;
use std::sync::Mutex;

const LOSSES: [f64; 4] = [0.0, 1e-4, 1e-3, 1e-2];
const BUFFERS: [f64; 3] = [0.1, 0.5, 1.0];
/// The kernel's name and ours.
const CONTROLS: [(&str, &str); 2] = [("reno", "newreno"), ("cubic", "cubic")];
/// Seconds at the start that do not count.
const WARM_UP: u64 = 5;

/// One comparison.
struct Cell {
    kernel: &'static str,
    ours: &'static str,
    loss: f64,
    buffer: f64,
}

/// What it gave, in Mb/s of payload.
struct Row {
    cell: Cell,
    kernel: f64,
    simulated: f64,
    is_valid: bool,
}

/// Compares all, so many at once, each for so many seconds after the warm-up.
pub(crate) fn run(seconds: u64, parallel: u64) -> Result<(), String> {
    let cells = Mutex::new(cells());
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = |worker: u64| {
            while let Some(cell) = cells.lock().ok().and_then(|mut cells| cells.pop()) {
                let row = compare(cell, seconds, worker);
                if let Ok(mut rows) = rows.lock() {
                    rows.push(row);
                }
            }
        };
        (0..parallel.max(1)).for_each(|worker| drop(scope.spawn(move || work(worker))));
    });
    let rows = rows.into_inner().map_err(|_| "a comparison stopped")?;
    let mut rows = rows.into_iter().collect::<Result<Vec<Row>, String>>()?;
    rows.sort_by(|a, b| order(&a.cell).total_cmp(&order(&b.cell)));
    print(&rows, seconds);
    Ok(())
}

/// All combinations, those to be done first last.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (kernel, ours) in CONTROLS {
        for loss in LOSSES {
            cells.extend(BUFFERS.map(|buffer| Cell { kernel, ours, loss, buffer }));
        }
    }
    cells.reverse();
    cells
}

fn order(cell: &Cell) -> f64 {
    let control = if cell.kernel == "reno" { 0.0 } else { 100.0 };
    control + cell.loss * 1000.0 + cell.buffer / 10.0
}

/// 20 Mb/s and a round trip of 40 ms.
fn network(cell: &Cell) -> Result<Topology, String> {
    let Cell { kernel, loss, buffer, .. } = cell;
    let loss = match *loss {
        0.0 => String::new(),
        loss => {
            format!(
                "loss = {{ probability = {loss:?}, side = \"after\", direction = \"there\" }}\n"
            )
        }
    };
    topology(&format!(
        "congestion = \"{kernel}\"\n[generate]\nkind = \"dumbbell\"\n[generate.bottleneck]\n\
         rate = \"20mbit\"\ndelay = \"18ms\"\n{loss}\
         queue = {{ kind = \"drop-tail\", limit = \"{buffer} bdp\", rtt = \"40ms\" }}\n"
    ))
}

fn compare(cell: Cell, seconds: u64, worker: u64) -> Result<Row, String> {
    let topology = network(&cell)?;
    let simulated = simulate(&topology, cell.ours, seconds)?;
    let (kernel, is_valid) = measure(&topology, seconds, worker)?;
    eprintln!(
        "{:6} loss {:.4} buffer {:.1}: kernel {kernel:.2}, simulated {simulated:.2} Mb/s",
        cell.kernel, cell.loss, cell.buffer
    );
    Ok(Row { cell, kernel, simulated, is_valid })
}

fn simulate(topology: &Topology, name: &str, seconds: u64) -> Result<f64, String> {
    let warm_up = Time::ZERO + Duration::from_secs(WARM_UP);
    let config = Config { seed: 1, warm_up, ..Config::default() };
    let mut flows = Flows::new(topology, config);
    let transport = TransportSpec::named(name, TcpSpec::default());
    let transport = transport.ok_or_else(|| format!("the simulator has no {name}"))?;
    let group = flows.add_group(Group { name: name.into(), transport, is_sampled: false });
    let hosts: Vec<_> = topology.hosts().collect();
    let (from, to) = (hosts[0], hosts[1]);
    let spec = FlowSpec { from, to, start: Time::ZERO, stop: None, bytes: None };
    flows.add(group, spec);
    flows.run_until(warm_up + Duration::from_secs(seconds));
    Ok(flows.goodput_of(group) * 8.0 / 1e6)
}

fn measure(topology: &Topology, seconds: u64, worker: u64) -> Result<(f64, bool), String> {
    let emulator = emulate(topology, &format!("k{worker}-"))?;
    let receiver = server(&emulator, 1)?;
    let (seconds, warm_up) = (seconds.to_string(), WARM_UP.to_string());
    let words = ["iperf3", "-J", "-t", &seconds, "-O", &warm_up, "-c", "right1"];
    let text = output(start(&emulator, 0, &words)?)?;
    output(receiver)?;
    let report = emulator.finish().map_err(|error| error.to_string())?;
    let result: Value = serde_json::from_str(&text).map_err(|error| format!("iperf3: {error}"))?;
    let rate = result["end"]["sum_received"]["bits_per_second"].as_f64();
    let rate = rate.ok_or_else(|| format!("iperf3 says nothing of its rate: {text}"))?;
    Ok((rate / 1e6, report.valid))
}

fn print(rows: &[Row], seconds: u64) {
    println!("20 Mb/s, round trip 40 ms, one flow, {seconds} s after {WARM_UP} s; payload in Mb/s");
    println!("| control | loss | buffer, BDP | kernel | simulated | simulated / kernel |");
    println!("|---|---|---|---|---|---|");
    for Row { cell, kernel, simulated, is_valid } in rows {
        let note = if *is_valid { "" } else { " (emulator late)" };
        println!(
            "| {} | {} | {} | {kernel:.2} | {simulated:.2} | {:.2}{note} |",
            cell.kernel,
            cell.loss,
            cell.buffer,
            simulated / kernel
        );
    }
    let mut off: Vec<f64> =
        rows.iter().map(|row| (row.simulated / row.kernel - 1.0).abs()).collect();
    off.sort_by(f64::total_cmp);
    let median = off.get(off.len() / 2).copied().unwrap_or(0.0);
    println!(
        "\nmedian difference {:.1}%, largest {:.1}%",
        median * 100.0,
        off.last().unwrap_or(&0.0) * 100.0
    );
}
