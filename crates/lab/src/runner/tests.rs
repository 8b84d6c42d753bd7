use super::*;
use crate::results;
use crate::scenario::{Scenario, Variation};
use std::sync::atomic::AtomicU32;

const FILE: &str = r#"
title = "a small file"
seeds = "1..3"
[topology.generate]
kind = "star"
nodes = 4
access = { rate = "10mbit", delay = "5ms" }
[[system]]
name = "mesh"
overlay = "bullet-prime"
[[system]]
name = "star"
overlay = "star"
[[workload]]
kind = "file"
source = "n1"
size = "300kB"
[measure]
series = ["throughput", "progress"]
[sweep]
"workload.file.block" = ["16KiB", "64KiB"]
"#;

const FLOWS: &str = r#"
title = "two flows"
duration = "3s"
warmup = "1s"
seeds = "1..2"
[topology.generate]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "5mbit", delay = "10ms", queue = { kind = "drop-tail", limit = "20 packets" } }
[[system]]
name = "tcp"
transport = "tcp"
[[workload]]
kind = "bulk"
from = "left*"
to = "right*"
jitter = "100ms"
[[workload]]
kind = "mice"
from = "left*"
to = "right*"
rate = "5/s"
mean = "5kB"
[[workload]]
kind = "on-off"
from = "left1"
to = "right1"
rate = "1mbit"
on = "50ms"
off = "50ms"
[measure]
series = ["throughput", "queue", "window"]
"#;

fn plan(text: &str) -> Plan {
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let scenario = Scenario::parse("t", "t.toml", text, &load, &Variation::default()).unwrap();
    Plan::new(scenario, None, "test").unwrap()
}

fn with(jobs: usize, interrupt: &AtomicBool, cache: Option<&Cache>, plan: &Plan) -> Done {
    run(plan, &Options { jobs, interrupt, cache, probes: None, on: &|_| {} })
}

fn csv(plan: &Plan, done: &Done) -> Vec<(String, String)> {
    let tables = results::tables(plan, &done.outcomes);
    tables.iter().map(|table| (table.name.clone(), table.to_csv())).collect()
}

#[test]
fn one_worker_and_four_write_the_same_bytes() {
    for text in [FILE, FLOWS] {
        let plan = plan(text);
        let never = AtomicBool::new(false);
        let (one, four) = (with(1, &never, None, &plan), with(4, &never, None, &plan));
        assert_eq!(one.finished(), plan.runs.len(), "{:?}", one.failed);
        assert_eq!(csv(&plan, &one), csv(&plan, &four));
        assert!(!one.is_interrupted);
    }
}

#[test]
fn a_run_of_connections_measures_what_the_bottleneck_allows() {
    let plan = plan(FLOWS);
    let done = with(1, &AtomicBool::new(false), None, &plan);
    let outcome = done.outcomes[0].as_ref().unwrap();
    let scalar = |name: &str| outcome.scalar(name).unwrap_or_else(|| panic!("no {name}"));
    assert!((0.5..=1.0).contains(&scalar("goodput_fraction")), "{}", scalar("goodput_fraction"));
    assert!((0.7..=1.001).contains(&scalar("utilization")), "{}", scalar("utilization"));
    assert!((0.5..=1.0).contains(&scalar("jain")));
    assert!(scalar("flows_finished") > 0.0 && scalar("fct_median_rtt") >= 1.0);
    let names: Vec<&str> = outcome.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["flows", "links", "series"]);
    // Another seed is another run.
    assert_ne!(done.outcomes[0], done.outcomes[1]);
}

#[test]
fn a_file_reaches_everybody_no_sooner_than_the_bound_packet_by_packet_too() {
    let packets = FILE.replace("seeds =", "wire = \"packet\"\nseeds =");
    let packets = plan(&packets);
    let done = with(2, &AtomicBool::new(false), None, &packets);
    assert_eq!(done.finished(), packets.runs.len(), "{:?}", done.failed);
    for outcome in done.outcomes.iter().flatten() {
        assert_eq!(outcome.scalar("completed"), Some(3.0));
        let ratio = outcome.scalar("completion_last_ratio").unwrap();
        assert!((1.0..6.0).contains(&ratio), "{ratio}");
    }
    let plan = plan(FILE);
    let done = with(2, &AtomicBool::new(false), None, &plan);
    for outcome in done.outcomes.iter().flatten() {
        assert_eq!(outcome.scalar("completed"), Some(3.0));
        let ratio = outcome.scalar("completion_last_ratio").unwrap();
        assert!((1.0..5.0).contains(&ratio), "{ratio}");
    }
    // The star's source sends everything to everyone.
    let star = plan.cells.iter().position(|cell| cell.system == "star").unwrap();
    let run = plan.runs.iter().position(|run| run.cell == star).unwrap();
    assert_eq!(done.outcomes[run].as_ref().unwrap().scalar("source_ratio"), Some(3.0));
}

#[test]
fn what_was_finished_before_an_interrupt_is_kept_and_not_done_again() {
    let plan = plan(FILE);
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("runs"));
    let interrupt = AtomicBool::new(false);
    let stop_after_five = |step: Step<'_>| {
        if step.done == 5 {
            interrupt.store(true, Ordering::Relaxed);
        }
    };
    let options = Options {
        jobs: 1,
        interrupt: &interrupt,
        cache: Some(&cache),
        probes: None,
        on: &stop_after_five,
    };
    let first = run(&plan, &options);
    assert!(first.is_interrupted);
    assert_eq!((first.finished(), first.kept), (5, 0));

    let done_anew = AtomicU32::new(0);
    let count = |step: Step<'_>| {
        done_anew.fetch_add(u32::from(!step.is_kept), Ordering::Relaxed);
    };
    let never = AtomicBool::new(false);
    let options =
        Options { jobs: 2, interrupt: &never, cache: Some(&cache), probes: None, on: &count };
    let second = run(&plan, &options);
    assert_eq!((second.finished(), second.kept), (12, 5));
    assert_eq!(done_anew.into_inner(), 7);
    let fresh = with(1, &never, None, &plan);
    assert_eq!(csv(&plan, &second), csv(&plan, &fresh), "kept runs are as good as new ones");
}

#[test]
fn receivers_that_go_are_replaced_by_empty_ones_on_every_wire() {
    for wire in ["fluid", "packet"] {
        let text = FILE
            .replace(
                "seeds = \"1..3\"",
                &format!("wire = \"{wire}\"\nduration = \"12s\"\nseeds = \"1\""),
            )
            .replace("size = \"300kB\"", "size = \"2MB\"\nlifetime = \"4s\"\nreplace = true");
        let plan = plan(&text);
        let done = with(2, &AtomicBool::new(false), None, &plan);
        assert_eq!(done.finished(), plan.runs.len(), "{wire}: {:?}", done.failed);
        for outcome in done.outcomes.iter().flatten() {
            let (all, completed) = (outcome.scalar("receivers"), outcome.scalar("completed"));
            assert!(all > Some(3.0) && completed < all, "{wire}: {completed:?} of {all:?}");
        }
    }
}

#[test]
fn a_run_is_known_by_all_that_its_result_depends_on_and_nothing_else() {
    let base = plan(FILE);
    let keys =
        |text: &str| -> Vec<String> { plan(text).runs.into_iter().map(|run| run.key).collect() };
    let all: Vec<String> = base.runs.iter().map(|run| run.key.clone()).collect();
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    let same = FILE.replace("a small file", "another title").replace("[measure]", "\n[measure]");
    assert_eq!(keys(&same), all);
    let other = keys(&FILE.replace("300kB", "301kB"));
    assert!(other.iter().all(|key| !all.contains(key)));
}

#[test]
fn a_sweep_of_too_many_runs_is_refused_with_their_number() {
    let text = FILE.replace(
        "[\"16KiB\", \"64KiB\"]",
        "{ from = \"1000B\", to = \"9000B\", steps = 10000 }\n\
         \"workload.file.stagger\" = { from = \"1s\", to = \"9s\", steps = 100 }",
    );
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let scenario = Scenario::parse("t", "t.toml", &text, &load, &Variation::default()).unwrap();
    let error = Plan::new(scenario, None, "test").unwrap_err().to_string();
    assert!(error.starts_with("t.toml:21: this sweep makes 6000000 runs"), "{error}");
}

#[test]
fn what_the_topology_finds_wrong_is_reported_at_the_scenarios_line() {
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let error = |text: &str| {
        let scenario = Scenario::parse("t", "t.toml", text, &load, &Variation::default()).unwrap();
        Plan::new(scenario, None, "test").unwrap_err().to_string()
    };
    for (from, to, expected) in [
        ("pairs = 2", "pears = 2", "t.toml:8: "),
        ("rate = \"5mbit\"", "rate = 5", "t.toml:9: "),
        ("rate = \"5mbit\"", "rate = \"-5mbit\"", "t.toml:9: "),
        ("delay = \"10ms\"", "delay = \"10ms\", loss = 1.5", "t.toml:9: "),
        ("from = \"left1\"", "from = \"left9\"", "t.toml:26: the topology has no host \"left9\""),
        ("to = \"right1\"", "to = \"left1\"", "t.toml:27: \"left1\" would send to itself"),
        ("[measure]", "[measure]\nlinks = \"middle\"", "t.toml:31: the topology has no link"),
    ] {
        assert!(FLOWS.contains(from), "{from}");
        let error = error(&FLOWS.replacen(from, to, 1));
        assert!(error.starts_with(expected), "{to}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let text = FLOWS.replace(
        "[topology.generate]\nkind = \"dumbbell\"\npairs = 2\nbottleneck = { rate = \"5mbit\", delay = \"10ms\", queue = { kind = \"drop-tail\", limit = \"20 packets\" } }",
        "[[topology.host]]\nname = \"left1\"\n[[topology.host]]\nname = \"right1\"\n[[topology.host]]\nname = \"left1\"",
    );
    assert!(error(&text).starts_with("t.toml:11: \"left1\" is there already"), "{}", error(&text));
    let apart = text.rsplitn(2, "name = \"left1\"").collect::<Vec<_>>();
    let unreachable = error(&format!("{}name = \"left2\"{}", apart[1], apart[0]));
    assert!(unreachable.contains("left1") && unreachable.contains("link"), "{unreachable}");
}
