//! What is wrong with a scenario is said in one sentence, at its line.

use super::*;
use anabranch_proto::overlay::bittorrent::{Pipelining, Priority};

const GOOD: &str = r#"title = "two flows"
duration = "10s"
seeds = "1..2"

[topology]
generator = "dumbbell"
pairs = 2
bottleneck = { rate = "10mbit", loss = 0.0 }

[[system]]
name = "reno"
transport = "tcp"

[[system]]
name = "fast"
transport = "fast"
set = { "topology.pairs" = 3 }

[[workload]]
kind = "bulk"
from = "left*"
to = "right*"

[[workload]]
kind = "mice"
from = "left*"
to = "right*"
rate = "5/s"
mean = "25kB"

[sweep]
"topology.bottleneck.loss" = [0, 0.01]
"topology.bottleneck.rate, workload.mice.rate" = ["1mbit"]
"#;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    Scenario::parse("test", "test.toml", text, &load, &Variation::default())
}

/// Everything of a scenario is read: the first error, if there is one.
fn error_of(text: &str) -> Option<String> {
    let scenario = match parse(text) {
        Ok(scenario) => scenario,
        Err(error) => return Some(error.to_string()),
    };
    let systems = 0..scenario.systems.len();
    let mut all =
        systems.flat_map(|system| scenario.points().into_iter().map(move |point| (system, point)));
    all.find_map(|(system, point)| scenario.experiment(system, &point).err())
        .map(|error| error.to_string())
}

fn good() -> String {
    GOOD.replace("\"topology.bottleneck.rate, workload.mice.rate\" = [\"1mbit\"]\n", "")
}

#[test]
fn a_scenario_is_read_whole() {
    let scenario = parse(&good()).unwrap();
    assert_eq!(scenario.title, "two flows");
    assert_eq!(scenario.seeds, [1, 2]);
    assert_eq!(scenario.systems, ["reno", "fast"]);
    assert_eq!(scenario.axes[0].column, "loss");
    assert_eq!(scenario.points(), [vec![0], vec![1]]);
    let experiment = scenario.experiment(0, &[1]).unwrap();
    let topology = "generator = \"dumbbell\"\npairs = 2\nbottleneck = {\nrate = \"10mbit\",\n\
                    loss = 0.01}\n";
    assert_eq!(experiment.topology.text, topology);
    assert!(matches!(&experiment.work, Work::Connections(all) if all.len() == 2));
}

#[test]
fn what_a_system_sets_differs_for_it_alone() {
    let scenario = parse(&good()).unwrap();
    let pairs = |system: usize| {
        let text = scenario.experiment(system, &[0]).unwrap().topology.text;
        text.lines().find(|line| line.starts_with("pairs")).unwrap().to_owned()
    };
    assert_eq!((pairs(0), pairs(1)), ("pairs = 2".to_owned(), "pairs = 3".to_owned()));
}

#[test]
fn each_mistake_gets_one_sentence_with_its_line() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "duration = \"10s\"",
            "durration = \"10s\"",
            "2: a scenario has no key \"durration\"; did you mean \"duration\"?",
        ),
        ("duration = \"10s\"", "duration = 10", "2: `duration`: the number 10 has no unit"),
        ("duration = \"10s\"", "", "1: a scenario needs `duration`"),
        ("rate = \"5/s\"", "rate = \"-5/s\"", "28: `rate`: \"-5/s\" is negative"),
        (
            "rate = \"5/s\"",
            "rate = 5",
            "28: `rate`: the number 5 has no unit; write it like \"500/s\"",
        ),
        (
            "rate = \"5/s\"",
            "rat = \"5/s\"",
            "28: [[workload]] has no key \"rat\"; did you mean \"rate\"?",
        ),
        (
            "mean = \"25kB\"",
            "mean = \"25kB\"\nsize = \"1MB\"",
            "30: [[workload]] has no key \"size\"",
        ),
        (
            "kind = \"mice\"",
            "kind = \"mise\"",
            "25: `kind` cannot be \"mise\"; did you mean \"mice\"?",
        ),
        ("kind = \"mice\"", "", "24: [[workload]] needs `kind`"),
        ("kind = \"bulk\"", "kind = \"bulk\"\ncount = 0", "21: `count` is 0, and no flow"),
        ("name = \"fast\"", "name = \"reno\"", "14: two systems are called \"reno\""),
        (
            "transport = \"fast\"",
            "transport = \"fats\"",
            "16: `transport` cannot be \"fats\"; did you mean \"fast\"?",
        ),
        (
            "transport = \"fast\"",
            "transport = \"fast\"\ncongestion = \"cubic\"",
            "17: [[system]] has no key \"congestion\"",
        ),
        ("transport = \"fast\"", "overlay = \"star\"", "14: the system \"fast\" is an overlay"),
        ("[0, 0.01]", "[]", "32: \"topology.bottleneck.loss\" has no values"),
        ("[0, 0.01]", "0.01", "32: \"topology.bottleneck.loss\" is a list of values"),
        ("[0, 0.01]", "[0, 0.01, 0]", "32: \"topology.bottleneck.loss\" has one value twice"),
        ("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"0B\"", "21: `size` is above zero"),
        ("kind = \"bulk\"", "kind = \"bulk\"\nstart = \"10s\"", "21: `start` is not before"),
        ("[0, 0.01]", "{ from = 0, to = 1, steps = 1 }", "32: `steps` is from 2"),
        ("[0, 0.01]", "{ from = 0, to = 1, steps = 3, log = true }", "32: equal ratios need"),
        (
            "\"topology.bottleneck.loss\"",
            "\"topology.botleneck.loss\"",
            "32: \"topology.botleneck.loss\": there is no \"botleneck\"; did you mean \"bottleneck\"?",
        ),
        (
            "\"topology.bottleneck.loss\"",
            "\"workload.mices.rate\"",
            "32: \"workload.mices.rate\": nothing is called \"mices\"; did you mean \"mice\"?",
        ),
        (
            "\"topology.bottleneck.loss\"",
            "\"workload.mice.rat\"",
            "32: [[workload]] has no key \"rat\"; did you mean \"rate\"?",
        ),
        ("\"topology.bottleneck.loss\"", "\"seeds\"", "32: \"seeds\" cannot be varied"),
        ("seeds = \"1..2\"", "seeds = \"2..1\"", "3: \"2..1\" is empty"),
        (
            "[topology]",
            "[topologies]",
            "32: \"topology.bottleneck.loss\": there is no \"topology\"",
        ),
        ("title = \"two flows\"", "title = two", "1: "),
        ("{ \"topology.pairs\" = 3 }", "3", "17: `set` is a table"),
    ];
    for (from, to, expected) in cases {
        assert!(GOOD.contains(from), "{from} is not in the scenario");
        let text = good().replacen(from, to, 1);
        let error = error_of(&text).unwrap_or_else(|| panic!("{to:?} is no mistake"));
        assert!(error.starts_with(&format!("test.toml:{expected}")), "{to:?}: {error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }
    assert_eq!(error_of(&good()), None);
}

#[test]
fn a_value_that_only_one_point_has_is_reported_where_it_stands() {
    let text = good().replace("\"topology.bottleneck.loss\"", "\"workload.mice.shape\"");
    let error = error_of(&text).unwrap();
    assert!(error.starts_with("test.toml:32: `shape` is 0"), "{error}");
}

#[test]
fn a_sweep_down_to_no_flows_is_refused_at_its_line() {
    let text = good()
        .replace("\"topology.bottleneck.loss\" = [0, 0.01]", "\"workload.bulk.count\" = [4, 2, 0]");
    let error = error_of(&text).unwrap();
    assert!(error.starts_with("test.toml:32: `count` is 0"), "{error}");
}

#[test]
fn paths_that_share_a_key_take_the_same_value() {
    let text = good().replace(
        "\"topology.bottleneck.loss\" = [0, 0.01]",
        "\"topology.pairs, workload.bulk.count\" = [4, 8]",
    );
    let experiment = parse(&text).unwrap().experiment(0, &[1]).unwrap();
    let Work::Connections(all) = &experiment.work else { panic!() };
    assert!(matches!(all[0].kind, WorkloadKind::Bulk { count: Some(8), .. }));
    assert!(experiment.topology.text.contains("pairs = 8"));
}

#[test]
fn ranges_keep_their_unit_and_their_ends() {
    let values = |range: &str| {
        let text = good().replace("[0, 0.01]", range);
        let axis = parse(&text).unwrap().axes[0].clone();
        (axis.column, axis.values)
    };
    let numbers = |numbers: &[f64]| -> Vec<_> {
        numbers.iter().map(|number| crate::table::Value::Number(*number)).collect()
    };
    let (column, found) = values("{ from = \"10mbit\", to = \"1000mbit\", steps = 3, log = true }");
    assert_eq!((column.as_str(), found), ("loss_mbps", numbers(&[10.0, 100.0, 1000.0])));
    let (column, found) = values("{ from = 1, to = 10, steps = 4 }");
    assert_eq!((column.as_str(), found), ("loss", numbers(&[1.0, 4.0, 7.0, 10.0])));
    let (column, found) = values("[\"10% bdp\", \"100% bdp\"]");
    assert_eq!((column.as_str(), found), ("loss_percent_bdp", numbers(&[10.0, 100.0])));
}

#[test]
fn quick_replaces_parameters_seeds_and_axes_and_is_otherwise_not_there() {
    let text = format!(
        "{}\n[quick]\nseeds = \"1..1\"\n\"topology.pairs\" = 1\nsweep = {{ \"topology.bottleneck.loss\" = [0.5] }}\n",
        good()
    );
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let quick = Scenario::parse(
        "test",
        "test.toml",
        &text,
        &load,
        &Variation { is_quick: true, ..Variation::default() },
    )
    .unwrap();
    assert_eq!((quick.seeds.clone(), quick.points().len()), (vec![1], 1));
    let topology = quick.experiment(0, &[0]).unwrap().topology.text;
    assert!(topology.contains("pairs = 1") && topology.contains("loss = 0.5"), "{topology}");
    let full = Scenario::parse("test", "test.toml", &text, &load, &Variation::default()).unwrap();
    assert_eq!((full.seeds.len(), full.points().len()), (2, 2));
}

#[test]
fn a_named_topology_reports_its_own_lines() {
    let text = good().replace(
        "[topology]\ngenerator = \"dumbbell\"\npairs = 2\nbottleneck = { rate = \"10mbit\", loss = 0.0 }\n",
        "",
    );
    let text = text.replace("duration", "topology = \"net.toml\"\nduration");
    let load = |_: &str| Ok("# a comment\npairs = 2\nbottleneck = { loss = 0 }\n".to_owned());
    let scenario =
        Scenario::parse("test", "test.toml", &text, &load, &Variation::default()).unwrap();
    let topology = scenario.experiment(0, &[1]).unwrap().topology;
    let of_line = |line| scenario.error(&topology.place(line), "here").to_string();
    // The second line came from the file's third; the loss from the sweep.
    assert_eq!(of_line(1), "net.toml:2: here");
    assert_eq!(of_line(2), "net.toml:3: here");
    assert!(of_line(3).starts_with("test.toml:"), "{}", of_line(3));
    let missing = parse(&text).unwrap_err().to_string();
    assert!(
        missing.starts_with("test.toml:2: the topology \"net.toml\" cannot be read"),
        "{missing}"
    );
}

#[test]
fn a_file_scenario_is_read_with_joins_churn_and_faults() {
    let text = r#"
title = "a file"
topology = { generator = "star", hosts = 3 }
[[system]]
name = "b"
overlay = "bullet-prime"
request = "first"
peers = 14
outstanding = 9
[[workload]]
kind = "file"
source = "h0"
size = "1MB"
join = [{ share = 0.5 }, { at = "100s", share = 0.5 }]
lifetime = "300s"
fault = [{ at = "5s", kind = "kill", hosts = "h*", share = 0.5 }]
"#;
    let experiment = parse(text).unwrap().experiment(0, &[]).unwrap();
    let Work::File(file) = &experiment.work else { panic!() };
    assert!(matches!(&file.joins, Joins::At(waves) if waves.len() == 2));
    assert_eq!((file.size, file.block, file.faults.len()), (1_000_000, 16_384, 1));
    let SystemKind::Overlay(Overlay::BulletPrime(system)) = &experiment.system.kind else {
        panic!()
    };
    let config = system.config();
    assert_eq!((config.peers_min, config.peers_max, config.peers_adapt), (14, 14, false));
    assert_eq!((config.outstanding_initial, config.outstanding_adapt), (9, false));
    for (from, to, expected) in [
        ("share = 0.5 }]\nlife", "share = 0.4 }]\nlife", "add up to 0.9, not 1"),
        ("share = 0.5 }]\n", "share = 1.5 }]\n", "1.5 is not between 0 and 1"),
        ("peers = 14", "peers = 0", "`peers` is \"dynamic\" or a number"),
        ("\"1MB\"", "\"0B\"", "`size` is from 1B"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = error_of(&text.replacen(from, to, 1)).unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn bittorrents_variant_is_said_by_the_scenario() {
    let text = r#"
title = "a file"
topology = { generator = "star", hosts = 3 }
[[system]]
name = "b"
overlay = "bittorrent"
[[workload]]
kind = "file"
source = "h0"
size = "1MB"
"#;
    let config = |more: &str| {
        let text = text.replace("[[workload]]", &format!("{more}\n[[workload]]"));
        let experiment = parse(&text).unwrap().experiment(0, &[]).unwrap();
        let SystemKind::Overlay(Overlay::BitTorrent(system)) = experiment.system.kind else {
            panic!()
        };
        system.config()
    };
    let default = config("");
    assert_eq!((default.priority, default.pipelining), (Priority::Rarity, Pipelining::Fixed(5)));
    assert_eq!((default.upload_slots, default.piece_len), (4, 262_144));
    let other = config(
        "priority = \"strict\"\noutstanding = \"dynamic\"\nupload_slots = 8\npiece = \"64KiB\"",
    );
    assert_eq!(other.priority, Priority::Strict);
    assert!(matches!(other.pipelining, Pipelining::Adaptive(_)));
    assert_eq!((other.upload_slots, other.piece_len), (8, 65_536));
    for (more, expected) in [
        ("priority = \"rarets\"", "`priority` cannot be \"rarets\"; did you mean \"rarest\"?"),
        ("outstanding = 501", "`outstanding` is \"dynamic\" or a number from 1 to 500"),
        ("upload_slot = 4", "did you mean \"upload_slots\"?"),
        ("piece = \"10B\"", "`piece` is from 1KiB"),
        ("peers = 10", "[[system]] has no key \"peers\""),
    ] {
        let text = text.replace("[[workload]]", &format!("{more}\n[[workload]]"));
        let error = error_of(&text).unwrap();
        assert!(error.contains(expected), "{error}");
    }
}
