use crate::plan::Plan;
use crate::results::cache::Cache;
use crate::runner::{self, Done, Options};
use crate::scenario::{Scenario, Variation};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const FLOWS: &str = r#"
title = "one flow"
duration = "3s"
warmup = "1s"
seeds = "1"
[topology.generate]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "5mbit", delay = "10ms", queue = { kind = "drop-tail", limit = "20 packets" } }
[[system]]
name = "tcp"
transport = "tcp"
[[workload]]
kind = "bulk"
from = "left*"
to = "right*"
[measure]
links = ["left>right"]
"#;

const FILE: &str = r#"
title = "a small file"
wire = "packet"
seeds = "1"
[topology.generate]
kind = "star"
nodes = 4
access = { rate = "10mbit", delay = "5ms" }
[[system]]
name = "mesh"
overlay = "bullet-prime"
[[workload]]
kind = "file"
source = "n1"
size = "600kB"
[measure]
interval = "100ms"
"#;

fn parse(text: &str) -> Result<Plan, String> {
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let scenario = Scenario::parse("t", "t.toml", text, &load, &Variation::default());
    let plan = scenario.and_then(|scenario| Plan::new(scenario, None, "test"));
    plan.map_err(|error| error.to_string())
}

fn run(plan: &Plan, folder: &Path, interrupt: bool) -> Done {
    let (cache, probes) = (Cache::new(folder.join("runs")), folder.join("probes"));
    let interrupt = AtomicBool::new(interrupt);
    let (cache, probes) = (Some(&cache), Some(probes.as_path()));
    runner::run(plan, &Options { jobs: 1, interrupt: &interrupt, cache, probes, on: &|_| {} })
}

fn written(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("probes"));
    let mut all: Vec<PathBuf> =
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// The packets of a capture: their lengths on the wire.
fn packets(pcap: &[u8]) -> Vec<u32> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_3c4d);
    let (mut at, mut lengths) = (24, Vec::new());
    while at < pcap.len() {
        lengths.push(word(at + 12));
        at += 16 + word(at + 8) as usize;
    }
    assert_eq!(at, pcap.len(), "the last packet is whole");
    lengths
}

fn number(done: &Done, column: &str) -> f64 {
    let tables = &done.outcomes[0].as_ref().unwrap().tables;
    let links = tables.iter().find(|table| table.name == "links").unwrap();
    let (name, column) = (links.column("link").unwrap(), links.column(column).unwrap());
    let row = links.rows.iter().find(|row| row[name].show() == "left>right").unwrap();
    row[column].number().unwrap()
}

#[test]
fn a_capture_has_every_packet_of_its_link_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&parse(FLOWS).unwrap(), folder.path(), false);
    assert!(written(folder.path()).is_empty());
    let plan = parse(&format!("{FLOWS}pcap = [\"left>right\"]\ntrace = true\n")).unwrap();
    let done = run(&plan, folder.path(), false);
    let files = written(folder.path());
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    let name = |ending| format!("tcp-seed_1-{}.{ending}", &plan.runs[0].key[..8]);
    assert_eq!(names, [name("jsonl").as_str(), &name("pcap")]);
    let lengths = packets(&std::fs::read(&files[1]).unwrap());
    assert_eq!(lengths.len() as f64, number(&done, "sent_packets"));
    assert_eq!(lengths.iter().map(|len| f64::from(*len)).sum::<f64>(), number(&done, "sent_bytes"));
    let trace = std::fs::read_to_string(&files[0]).unwrap();
    let of = |name: &str| trace.matches(&format!("\"name\":\"link:{name}\"")).count() as f64;
    assert_eq!(of("sent"), number(&done, "sent_packets"));
    assert!(of("dropped") > 0.0 && of("dropped") == number(&done, "dropped_packets"));
    for line in trace.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    let (mut with, without) = (done.outcomes[0].clone().unwrap(), plain.outcomes[0].clone());
    assert_eq!((with.scalar("pcap_cut"), with.scalar("trace_cut")), (Some(0.0), Some(0.0)));
    with.scalars.retain(|(name, _)| !name.ends_with("_cut"));
    assert_eq!(Some(with), without);
}

#[test]
fn a_file_over_packets_is_captured_traced_and_its_queues_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let more = "series = [\"queue\"]\nlinks = [\"n1>*\"]\npcap = [\"n1>*\"]\ntrace = true\n";
    let done = run(&parse(&format!("{FILE}{more}")).unwrap(), folder.path(), false);
    assert_eq!(done.finished(), 1, "{:?}", done.failed);
    let files = written(folder.path());
    let bytes: u32 = packets(&std::fs::read(&files[1]).unwrap()).iter().sum();
    assert!(bytes > 600_000, "the source sends at least the file: {bytes}");
    let trace = std::fs::read_to_string(&files[0]).unwrap();
    assert!(trace.lines().count() > 1000 && trace.contains("\"from\":\"n1\""));
    let tables = &done.outcomes[0].as_ref().unwrap().tables;
    let series = tables.iter().find(|table| table.name == "series").unwrap();
    let (what, of) = (series.column("what").unwrap(), series.column("of").unwrap());
    let links: BTreeSet<String> = series.rows.iter().map(|row| row[of].show()).collect();
    assert_eq!(links.len(), 1);
    assert!(series.rows.iter().all(|row| row[what].show() == "queue_packets"));
    assert!(series.numbers("value").iter().any(|packets| *packets > 0.0));
    // Sampling does not change the run.
    let plain = run(&parse(FILE).unwrap(), folder.path(), false);
    let time = |done: &Done| done.outcomes[0].as_ref().unwrap().scalar("completion_last_s");
    assert_eq!(time(&done), time(&plain));
}

#[test]
fn a_file_ends_at_its_limit_with_a_whole_packet_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let more = "pcap = [\"left>right\"]\ntrace = true\nfile_limit = \"10kB\"\n";
    let done = run(&parse(&format!("{FLOWS}{more}")).unwrap(), folder.path(), false);
    let outcome = done.outcomes[0].as_ref().unwrap();
    assert_eq!((outcome.scalar("pcap_cut"), outcome.scalar("trace_cut")), (Some(1.0), Some(1.0)));
    let files = written(folder.path());
    let pcap = std::fs::read(&files[1]).unwrap();
    assert!((9_000..=10_000).contains(&pcap.len()) && packets(&pcap).len() > 50);
    let trace = std::fs::read_to_string(&files[0]).unwrap();
    assert!((9_000..=10_000).contains(&trace.len()) && trace.ends_with("}}\n"));
}

#[test]
fn a_kept_run_whose_files_are_gone_is_done_again_and_an_interrupted_one_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let plan = parse(&format!("{FLOWS}pcap = [\"left>right\"]\n")).unwrap();
    assert_eq!(run(&plan, folder.path(), true).finished(), 0);
    assert!(written(folder.path()).is_empty());
    assert_eq!(run(&plan, folder.path(), false).kept, 0);
    assert_eq!(run(&plan, folder.path(), false).kept, 1);
    std::fs::remove_file(&written(folder.path())[0]).unwrap();
    assert_eq!(run(&plan, folder.path(), false).kept, 0);
    assert_eq!(written(folder.path()).len(), 1);
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_a_sentence() {
    let fluid = FILE.replace("wire = \"packet\"", "");
    for (text, more, expected) in [
        (FLOWS, "pcap = [\"left>rihgt\"]", "the topology has no link \"left>rihgt\""),
        (FLOWS, "series = [\"progress\"]", "connections have no `series` \"progress\""),
        (FLOWS, "trace = 3", "`trace`: "),
        (FLOWS, "file_limit = 3", "`file_limit`: the number 3 has no unit"),
        (FLOWS, "file_limit = \"3B\"", "`file_limit` is from 1kB to 100GB"),
        (FILE, "series = [\"window\"]", "a file has no `series` \"window\""),
        (&fluid, "pcap = [\"n1>*\"]", "`pcap` needs packets: set wire = \"packet\""),
        (&fluid, "trace = true", "`trace` needs packets: set wire = \"packet\""),
        (&fluid, "series = [\"queue\"]", "the series \"queue\" needs packets"),
    ] {
        let error = parse(&format!("{text}{more}\n")).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{more}: {error}");
    }
    let many = FLOWS.replace("pairs = 1", "pairs = 40").replace("links = [\"left>right\"]", "");
    let error = parse(&format!("{many}trace = true\n")).unwrap_err();
    assert!(error.contains("name some of them in `links`"), "{error}");
}

#[test]
fn xcp_without_an_xcp_router_at_its_slowest_link_is_refused() {
    let xcp = FLOWS.replace("transport = \"tcp\"", "transport = \"xcp\"");
    let error = parse(&xcp).unwrap_err();
    assert!(
        error.starts_with(
            "t.toml:15: XCP from \"left1\" to \"right1\" has no XCP router at \"left>right\""
        ),
        "{error}"
    );
    let routers = xcp.replace("kind = \"drop-tail\"", "kind = \"xcp\"");
    assert!(parse(&routers).is_ok());
    // A slower access link in front of the router is no better.
    let slow = routers.replace("pairs = 1", "pairs = 1\naccess = { rate = \"4mbit\" }");
    let error = parse(&slow).unwrap_err();
    assert!(error.contains("has no XCP router at \"left1>left\""), "{error}");
}

#[test]
fn a_file_that_a_topology_names_is_part_of_a_runs_key() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let generate = "[generate]\nkind = \"dumbbell\"\npairs = 1\nbottleneck = { rate = \"5mbit\", \
                    delay = \"10ms\", queue = { kind = \"drop-tail\", limit = \"20 packets\" } }\n";
    put("base.toml", generate);
    put("net.toml", "file = \"base.toml\"\n");
    let begin = FLOWS.find("[topology.generate]").unwrap();
    let end = FLOWS.find("[[system]]").unwrap();
    let text = format!("{}[topology]\nfile = \"net.toml\"\n{}", &FLOWS[..begin], &FLOWS[end..]);
    put("s.toml", &text);
    let key = || {
        let path = folder.path().join("s.toml");
        let scenario = Scenario::read(&path, &Variation::default()).unwrap();
        Plan::new(scenario, None, "test").unwrap().runs[0].key.clone()
    };
    let first = key();
    assert_eq!(key(), first);
    put("base.toml", &generate.replace("5mbit", "6mbit"));
    assert_ne!(key(), first);
}
