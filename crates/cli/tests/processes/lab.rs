//! `anabranch lab run` and `list` as users and scripts run them.

use crate::stage::{End, Program, Stage, number};
use serde_json::Value;
use std::process::Command;

/// Small enough for a second, large enough to be interrupted.
const SCENARIO: &str = r#"title = "a small file to a few"
seeds = "1..3"
[topology.generate]
kind = "star"
nodes = 5
access = { rate = "10mbit", delay = "5ms" }
[[system]]
name = "mesh"
overlay = "bullet-prime"
[[workload]]
kind = "file"
source = "n1"
size = "400kB"
[sweep]
"workload.file.block" = ["16KiB", "32KiB"]
"#;

fn lab(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = stage.command("home");
    command.arg("lab").args(arguments);
    command
}

fn run(stage: &Stage, arguments: &[&str]) -> End {
    Program::start(lab(stage, arguments)).end()
}

fn write(stage: &Stage, text: &str) {
    std::fs::write(stage.path("s.toml"), text).unwrap();
}

#[test]
fn a_scenario_gives_tables_figures_and_a_report_and_jobs_do_not_change_a_byte() {
    let stage = Stage::new();
    write(&stage, SCENARIO);
    let one = run(&stage, &["run", "s.toml", "--out", "one", "--jobs", "1"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!((&one.last["event"], &one.last["status"]), (&"result".into(), &"complete".into()));
    assert_eq!(number(&one.last, "runs_finished"), 6);
    let four = run(&stage, &["run", "s.toml", "--out", "four", "--jobs", "4"]);
    assert_eq!(four.code, Some(0), "{four:?}");
    for name in ["runs.csv", "completions.csv", "nodes.csv", "summary.json"] {
        let read = |out: &str| std::fs::read(stage.path(out).join(name)).unwrap();
        assert_eq!(read("one"), read("four"), "{name}");
    }
    let manifest = std::fs::read_to_string(stage.path("one/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!((&manifest["status"], &manifest["jobs"]), (&"complete".into(), &1.into()));
    let report = std::fs::read_to_string(stage.path("one/report.html")).unwrap();
    assert!(report.contains("a small file to a few") && report.contains("<svg"));
}

#[test]
fn what_was_finished_is_kept_and_the_same_command_goes_on() {
    let stage = Stage::new();
    // Many runs, so that the interrupt comes in the middle on any machine.
    write(&stage, &SCENARIO.replace("400kB", "4MB").replace("1..3", "1..200"));
    let arguments = ["run", "s.toml", "--out", "out", "--jobs", "1"];
    let mut program = Program::start(lab(&stage, &arguments));
    program.wait_for(|event| event["event"] == "run" && number(event, "runs_done") == 3);
    program.interrupt();
    let end = program.end();
    assert_eq!((end.code, &end.last["event"]), (Some(130), &"error".into()), "{end:?}");
    assert!(end.stderr.contains("the same command goes on"), "{}", end.stderr);
    let manifest = std::fs::read_to_string(stage.path("out/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["status"], "partial");
    let finished = number(&manifest, "runs_finished");
    assert!((3..400).contains(&finished), "{finished}");

    // Fewer seeds of the same scenario: every run of seed 1 was among the first.
    let end = run(&stage, &["run", "s.toml", "--out", "out", "--seed", "1"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(number(&end.last, "runs_kept") >= 1, "{end:?}");
    assert!(end.stderr.contains("had been finished before and were kept"), "{}", end.stderr);
}

#[test]
fn a_wrong_scenario_is_one_sentence_with_its_line_and_nothing_is_created() {
    let stage = Stage::new();
    for (from, to, expected) in [
        ("seeds", "seads", "s.toml:2: a scenario has no key \"seads\"; did you mean \"seeds\"?"),
        ("\"400kB\"", "400", "s.toml:13: `size`: the number 400 has no unit"),
        ("\"10mbit\"", "\"-10mbit\"", "s.toml:6: rate: \"-10mbit\" is negative"),
        (
            "\"5ms\"",
            "\"5ms\", loss = { probability = 1.5, side = \"after\", direction = \"both\" }",
            "s.toml:6: probability: 1.5 is not between 0 and 1",
        ),
        ("\"n1\"", "\"n7\"", "s.toml:12: the topology has no host \"n7\"; did you mean"),
        (
            "workload.file.block",
            "workload.fiel.block",
            "s.toml:15: \"workload.fiel.block\": nothing",
        ),
        ("[\"16KiB\", \"32KiB\"]", "[]", "s.toml:15: \"workload.file.block\" has no values"),
        (
            "[[system]]",
            "[[topology.host]]\nname = \"n1\"\n[[system]]",
            "s.toml:8: \"n1\" is there already",
        ),
        (
            "\"10mbit\", delay",
            "\"10mbit\", delya",
            "s.toml:6: unknown key `delya` in access: did you mean `delay`?",
        ),
        ("\"10mbit\"", "10", "s.toml:6: rate: \"10\" has no unit"),
        (
            "[\"16KiB\", \"32KiB\"]",
            "[\"16KiB\", \"16KiB\"]",
            "s.toml:15: \"workload.file.block\" has one",
        ),
        (
            "\"32KiB\"]",
            "\"32KiB\"]\n[quick]\n\"workload.file.sise\" = \"1kB\"",
            "s.toml:17: [[workload]] has no key \"sise\"; did you mean \"size\"?",
        ),
    ] {
        assert!(SCENARIO.contains(from), "{from}");
        write(&stage, &SCENARIO.replacen(from, to, 1));
        let end = run(&stage, &["run", "s.toml", "--out", "out"]);
        assert_eq!((end.code, &end.last["code"]), (Some(2), &2.into()), "{to}: {end:?}");
        let errors: Vec<&str> =
            end.stderr.lines().filter(|line| line.starts_with("anabranch: ")).collect();
        assert!(errors.len() == 1 && errors[0].contains(expected), "{expected:?}: {errors:?}");
        assert!(!stage.path("out").exists(), "{to}");
    }
}

#[test]
fn a_host_that_no_way_leads_to_and_a_second_host_of_a_name_are_refused() {
    let stage = Stage::new();
    let good = r#"title = "two hosts"
duration = "1s"
[topology]
host = [{ name = "a" }, { name = "b" }]
link = [{ from = "a", to = "b", rate = "10mbit", delay = "5ms" }]
[[system]]
name = "reno"
transport = "tcp"
[[workload]]
kind = "bulk"
from = "a"
to = "b"
"#;
    for (from, to, expected) in [
        (
            "{ name = \"b\" }",
            "{ name = \"b\" }, { name = \"c\" }",
            "s.toml:4: there is no way from",
        ),
        ("{ name = \"b\" }", "{ name = \"a\" }", "s.toml:4: \"a\" is there already"),
        ("kind = \"bulk\"", "kind = \"bulk\"\ncount = 0", "s.toml:11: `count` is 0"),
    ] {
        write(&stage, &good.replacen(from, to, 1));
        let end = run(&stage, &["run", "s.toml", "--out", "out"]);
        assert_eq!(end.code, Some(2), "{to}: {end:?}");
        assert!(end.stderr.contains(&format!("anabranch: {expected}")), "{to}: {}", end.stderr);
        assert!(!stage.path("out").exists(), "{to}");
    }
    write(&stage, good);
    let end = run(&stage, &["run", "s.toml", "--seed", "1", "--out", "out"]);
    assert_eq!(end.code, Some(0), "{end:?}");
}

#[test]
fn results_are_not_put_among_other_files() {
    let stage = Stage::new();
    write(&stage, SCENARIO);
    std::fs::create_dir(stage.path("full")).unwrap();
    std::fs::write(stage.path("full/thesis.tex"), "years of work").unwrap();
    let end = run(&stage, &["run", "s.toml", "--out", "full"]);
    assert_eq!(end.code, Some(6), "{end:?}");
    assert!(end.stderr.contains("choose another folder with --out"), "{}", end.stderr);
    let end = run(&stage, &["run", "no-such-scenario"]);
    assert_eq!(end.code, Some(2), "{end:?}");
    assert!(end.stderr.contains("see anabranch lab list"), "{}", end.stderr);
}

#[test]
fn what_comes_with_the_program_is_listed_and_runs_by_name() {
    let stage = Stage::new();
    let end = run(&stage, &["list"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let names = |kind: &str| -> Vec<String> {
        let entries = end.last[kind].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("scenarios").contains(&"dumbbell-tcp".to_owned()));
    assert!(names("claims").contains(&"plt.loss".to_owned()));
    let end = run(&stage, &["run", "file-star", "--quick"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(stage.path("lab-results/file-star/report.html").exists());
}

#[test]
fn a_capture_and_a_trace_lie_beside_the_tables_and_are_named_after_their_run() {
    let stage = Stage::new();
    let looked_at = "\n[measure]\nlinks = [\"n1>*\"]\npcap = [\"n1>*\"]\ntrace = true\n[sweep]";
    let text = SCENARIO.replace("seeds = \"1..3\"", "wire = \"packet\"\nseeds = \"1\"");
    write(&stage, &text.replace("\n[sweep]", looked_at));
    let end = run(&stage, &["run", "s.toml", "--out", "out"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let entries = std::fs::read_dir(stage.path("out/probes")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("mesh-") && name.contains("seed_1-")));
    for name in names {
        let bytes = std::fs::read(stage.path("out/probes").join(&name)).unwrap();
        match name.strip_suffix(".pcap") {
            Some(_) => assert!(bytes.starts_with(&[0x4d, 0x3c, 0xb2, 0xa1]), "{name}"),
            None => assert!(bytes.starts_with(b"{\"v\":1,\"event\":\"trace\""), "{name}"),
        }
        assert!(bytes.len() > 10_000, "{name}: {}", bytes.len());
    }
    let runs = std::fs::read_to_string(stage.path("out/runs.csv")).unwrap();
    assert!(runs.contains("pcap_cut") && runs.contains("trace_cut"));
}
