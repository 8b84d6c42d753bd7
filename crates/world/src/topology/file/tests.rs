use super::*;
use crate::topology::{
    Changed, ClassMap, Limit, LinkIx, Loss, LossModel, NodeIx, QueueSpec, RedSpec, Side, XcpSpec,
};
use crate::units::{mbit, ms, s};
use anabranch_proto::time::{Duration, Time};

/// Two hosts and a router, to which a test adds what it is about.
const NODES: &str = r#"
[[host]]
name = "a"
[[host]]
name = "b"
[[router]]
name = "r"
"#;

const LINKS: &str = r#"
[[link]]
from = "a"
to = "r"
rate = "10mbit"
delay = "5ms"
[[link]]
from = "r"
to = "b"
rate = "10mbit"
delay = "5ms"
"#;

fn parse(text: &str) -> Topology {
    Topology::parse(text, "test.toml").unwrap()
}

fn error(text: &str) -> String {
    Topology::parse(text, "test.toml").unwrap_err().to_string()
}

/// The first link of a file in which `attributes` are its own.
fn link_with(attributes: &str) -> String {
    let link = "[[link]]\nfrom = \"a\"\nto = \"r\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n";
    let rest = LINKS.split("[[link]]").nth(2).unwrap();
    format!("{NODES}{link}{attributes}\n[[link]]{rest}")
}

#[test]
fn a_link_has_two_directions_and_the_way_back_may_differ() {
    let net = parse(&link_with(
        r#"label = "access"
loss = { probability = 0.01, side = "after", direction = "there" }
reverse = { rate = "1mbit", loss = { probability = 0.1, side = "before" }, mtu = "576B" }"#,
    ));
    assert_eq!(net.nodes.len(), 3);
    assert_eq!(net.links.len(), 4);
    let (there, back) = (&net.links[0], &net.links[1]);
    assert_eq!((there.from, there.to), (NodeIx(0), NodeIx(2)));
    assert_eq!((back.from, back.to), (NodeIx(2), NodeIx(0)));
    assert_eq!((there.rate, back.rate), (mbit(10), mbit(1)));
    assert_eq!((there.delay, back.delay), (ms(5), ms(5)));
    assert_eq!((there.mtu, back.mtu), (1500, 576));
    assert_eq!(back.label, "access");
    let loss =
        |probability, side| Some(Loss { model: LossModel::Independent { probability }, side });
    assert_eq!((there.loss, back.loss), (loss(0.01, Side::After), loss(0.1, Side::Before)));
    assert_eq!(there.queue, QueueSpec::DropTail { limit: Limit::Packets(100) });
    assert_eq!(net.links[2].loss, None);
}

#[test]
fn a_limit_is_stated_in_packets_bytes_time_or_bandwidth_delay_products() {
    for (limit, expected) in [
        ("limit = \"7 packets\"", Limit::Packets(7)),
        ("limit = \"1 packet\"", Limit::Packets(1)),
        ("limit = \"300KB\"", Limit::Bytes(300_000)),
        ("limit = \"100ms\"", Limit::Bytes(125_000)),
        ("limit = \"0.5 bdp\", rtt = \"80ms\"", Limit::Bytes(50_000)),
        // A queue holds at least one packet.
        ("limit = \"1us\"", Limit::Bytes(1500)),
    ] {
        let net = parse(&link_with(&format!("queue = {{ kind = \"drop-tail\", {limit} }}")));
        assert_eq!(net.links[0].queue, QueueSpec::DropTail { limit: expected }, "{limit}");
    }
}

#[test]
fn every_kind_of_queue_can_be_written() {
    let queue = |text: &str| parse(&link_with(&format!("queue = {text}"))).links[0].queue.clone();
    let drop_tail = |packets| QueueSpec::DropTail { limit: Limit::Packets(packets) };
    assert_eq!(
        queue(r#"{ kind = "red", limit = "60 packets", min = "5 packets", max = "15 packets" }"#),
        QueueSpec::Red(RedSpec {
            limit: Limit::Packets(60),
            min: 5.0,
            max: 15.0,
            probability_max: 0.1,
            weight: 0.002
        })
    );
    assert_eq!(
        queue(
            r#"{ kind = "priority", map = { ef = 0, 10 = 1, other = 1 }, classes = [
                { kind = "drop-tail", limit = "5 packets" },
                { kind = "xcp", limit = "50KB", alpha = 0.3 } ] }"#
        ),
        QueueSpec::Priority {
            classes: vec![
                drop_tail(5),
                QueueSpec::Xcp(XcpSpec {
                    limit: Limit::Bytes(50_000),
                    alpha: 0.3,
                    beta: 0.226,
                    shuffle: 0.1
                })
            ],
            map: ClassMap { entries: vec![(10, 1), (46, 0)], other: 1 },
        }
    );
    assert_eq!(
        queue(r#"{ kind = "push-out", limit = "9 packets", classes = 3, map = { af21 = 1 } }"#),
        QueueSpec::PushOut {
            limit: Limit::Packets(9),
            classes: 3,
            map: ClassMap { entries: vec![(18, 1)], other: 2 },
        }
    );
}

#[test]
fn without_a_map_lower_effort_is_lowest_and_one_limit_serves_all_classes() {
    let queue = |text: &str| parse(&link_with(&format!("queue = {text}"))).links[0].queue.clone();
    let map = |low, middle| ClassMap { entries: vec![(1, low), (4, middle)], other: 0 };
    assert_eq!(
        queue(r#"{ kind = "push-out", limit = "9 packets" }"#),
        QueueSpec::PushOut { limit: Limit::Packets(9), classes: 2, map: map(1, 0) }
    );
    let tail = QueueSpec::DropTail { limit: Limit::Packets(9) };
    assert_eq!(
        queue(r#"{ kind = "priority", limit = "9 packets", classes = 3 }"#),
        QueueSpec::Priority { classes: vec![tail; 3], map: map(2, 1) }
    );
}

#[test]
fn losses_come_in_bursts_too() {
    let text = r#"loss = { to-bad = 0.01, to-good = 0.2, side = "after", direction = "both" }"#;
    let net = parse(&link_with(text));
    let model =
        LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };
    let loss = Some(Loss { model, side: Side::After });
    assert_eq!((net.links[0].loss, net.links[1].loss), (loss, loss));
}

#[test]
fn changes_name_links_by_their_ends_or_their_label_and_are_in_order_of_time() {
    let net = parse(&format!(
        "{}{}",
        link_with("label = \"slow\""),
        r#"
[[change]]
at = "20s"
link = "a -> r"
rate = "1mbit"
delay = "9ms"
[[change]]
at = "10s"
label = "slow"
down = true
[[change]]
at = "30s"
link = "b <-> r"
loss = { probability = 0.5, side = "before" }
[[change]]
at = "40s"
link = "r -> b"
loss = "none"
"#
    ));
    let changes: Vec<_> = net.changes.iter().map(|c| (c.at, c.link.0, c.to)).collect();
    let at = |seconds| Time::ZERO + s(seconds);
    let loss = Loss { model: LossModel::Independent { probability: 0.5 }, side: Side::Before };
    assert_eq!(
        changes,
        [
            (at(10), 0, Changed::Down),
            (at(10), 1, Changed::Down),
            (at(20), 0, Changed::Rate(mbit(1))),
            (at(20), 0, Changed::Delay(ms(9))),
            (at(30), 2, Changed::Loss(Some(loss))),
            (at(30), 3, Changed::Loss(Some(loss))),
            (at(40), 2, Changed::Loss(None)),
        ]
    );
}

#[test]
fn a_file_may_generate_and_then_add_its_own() {
    let net = parse(
        r#"
about = "two sides, and a third host in the middle"
congestion = "cubic"
[generate]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "20mbit", delay = "10ms" }
[[host]]
name = "extra"
[[link]]
from = "extra"
to = "left"
rate = "1gbit"
delay = "0"
"#,
    );
    assert_eq!(net.congestion.as_deref(), Some("cubic"));
    let (extra, right) = (net.find("extra").unwrap(), net.find("right2").unwrap());
    let mut routes = crate::topology::Routes::new(&net);
    assert_eq!(routes.delay(extra, right), Some(ms(11)));
    assert_eq!(net.links_between(extra, net.find("left").unwrap()).count(), 1);
    assert_eq!(net.links_between(extra, right).next(), None::<LinkIx>);
}

#[test]
fn a_table_of_a_larger_document_keeps_its_lines_and_can_be_swept() {
    #[derive(serde::Deserialize)]
    struct Scenario {
        topology: TopologySpec,
    }
    let text = "x = 1\n[topology.generate]\nkind = \"star\"\nnodes = 1\n";
    let mut scenario: Scenario = toml::from_str(text).unwrap();
    let error = scenario.topology.build(1, Path::new("")).unwrap_err();
    let error = error.within("scenario.toml", text).to_string();
    assert_eq!(error, "scenario.toml:4: nodes: 1 is not between 2 and 100000");
    scenario.topology.set("generate.nodes", 7.into()).unwrap();
    scenario.topology.set("generate.access.rate", "3mbit".into()).unwrap();
    let net = scenario.topology.build(1, Path::new("")).unwrap();
    assert_eq!(net.hosts().count(), 7);
    assert_eq!(net.links[0].rate, mbit(3));
    assert_eq!(net.links[0].delay, ms(10));
    assert!(scenario.topology.set("generate.nodes.x", 1.into()).is_err());
}

#[test]
fn a_topology_may_start_from_another_file_and_points_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("base.toml", "[generate]\nkind = \"star\"\nnodes = 3\n");
    write("broken.toml", "[generate]\nkind = \"stra\"\n");
    let top = dir.path().join("top.toml").display().to_string();
    let with = |name: &str| format!("file = \"{name}\"\n[[change]]\nat = \"1s\"\n{CHANGE}");
    let net = Topology::parse(&with("base.toml"), &top).unwrap();
    assert_eq!((net.hosts().count(), net.changes.len()), (3, 2));
    let error = Topology::parse(&with("broken.toml"), &top).unwrap_err().to_string();
    assert!(error.contains("broken.toml:2: kind: \"stra\" is none of"), "{error}");
    assert!(error.ends_with("did you mean `star`?"), "{error}");
    write("loop.toml", "file = \"loop.toml\"\n");
    let error = Topology::parse(&with("loop.toml"), &top).unwrap_err().to_string();
    assert!(error.contains("4 files deep"), "{error}");
    assert!(Topology::parse(&with("none.toml"), &top).unwrap_err().what.contains("cannot be read"));
}

const CHANGE: &str = "link = \"n1 <-> hub\"\ndelay = \"7ms\"\n";

/// A file, and what is said of it.
const MISTAKES: &[(&str, &str)] = &[
    // Spelling.
    (
        "[[hots]]\nname = \"a\"\n",
        "test.toml:1: unknown key `hots` in a topology: did you mean `host`?",
    ),
    (
        "[host]\nname = \"a\"\n",
        "test.toml:1: `host` is a list of tables: write [[host]] with two brackets",
    ),
    (
        "NODES\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrat = \"1mbit\"\ndelay = \"0\"\n",
        "test.toml:11: unknown key `rat` in a link: did you mean `rate`?",
    ),
    (
        "NODES\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1mbit\"\ndelay = \"0\"\ncolour = \"red\"\n",
        "test.toml:13: unknown key `colour` in a link, which knows",
    ),
    (
        "[[host]]\nname = \"a\"\nweight = 1\n",
        "test.toml:3: unknown key `weight` in a host, which knows name",
    ),
    (
        "NODES\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"0\"\n",
        "test.toml:8: a link needs `rate`",
    ),
    (
        "[generate]\nkind = \"dumbell\"\n",
        "test.toml:2: kind: \"dumbell\" is none of dumbbell, parking-lot, star, mesh, power-law, transit-stub and matrix: did you mean `dumbbell`?",
    ),
    (
        "[generate]\nkind = \"dumbbell\"\npair = 3\n",
        "test.toml:3: unknown key `pair` in `generate`: did you mean `pairs`?",
    ),
    (
        "[generate]\nkind = \"dumbbell\"\nbottleneck = { ratte = \"1mbit\" }\n",
        "test.toml:3: unknown key `ratte` in bottleneck: did you mean `rate`?",
    ),
    ("name = = 3\n", "test.toml:1: this is not TOML: "),
    ("[[host]]\nname = \"a\"\nname = \"b\"\n", "test.toml:3: this is not TOML: duplicate key"),
    // Units and signs.
    ("LINK rate = 20", "rate: \"20\" has no unit; write it like 155mbit, 20MB/s or 8MiB/s"),
    ("LINK rate = \"20\"", "rate: \"20\" has no unit; write it like 155mbit, 20MB/s or 8MiB/s"),
    ("LINK rate = \"-5mbit\"", "rate: \"-5mbit\" is negative"),
    ("LINK rate = -5", "rate: \"-5\" is negative"),
    (
        "LINK rate = \"0mbit\"",
        "rate: \"0mbit\" carries nothing; a link that is down is a change with `down = true`",
    ),
    ("LINK rate = \"5Mb\"", "rate: \"5Mb\" has a unit that is not known or not clear here"),
    ("LINK rate = true", "rate: this is true or false, not a quantity"),
    ("LINK delay = \"20\"", "delay: \"20\" has no unit; write it like 20ms, 30s or 10min"),
    ("LINK delay = \"-1ms\"", "delay: \"-1ms\" is negative"),
    ("LINK delay = \"9999999h\"", "delay: longer than a thousand days"),
    ("LINK mtu = 20", "mtu: 20 is not between 68 and 65535"),
    ("LINK mtu = \"1MB\"", "mtu: 1000000 is not between 68 and 65535 bytes"),
    ("LINK one-way = \"yes\"", "one-way: this is a text, not true or false"),
    (
        "LINK one-way = true\nreverse = { rate = \"1mbit\" }",
        "a link with `one-way = true` has no `reverse`",
    ),
    ("LINK reverse = \"1mbit\"", "the way back (`reverse`) is a table, not a text"),
    // Loss.
    (
        "LINK loss = { probability = 1.5, side = \"after\", direction = \"both\" }",
        "probability: 1.5 is not between 0 and 1, as a probability is",
    ),
    ("LINK loss = { probability = 0.1, direction = \"both\" }", "a loss needs `side`"),
    (
        "LINK loss = { probability = 0.1, side = \"befor\", direction = \"both\" }",
        "side: \"befor\" is none of before and after: did you mean `before`?",
    ),
    ("LINK loss = { probability = 0.1, side = \"after\" }", "a loss needs `direction`"),
    (
        "LINK loss = { probabilty = 0.1, side = \"after\" }",
        "unknown key `probabilty` in a loss: did you mean `probability`?",
    ),
    ("LINK loss = { to-bad = 0.1, side = \"after\" }", "a loss needs `to-good`"),
    ("LINK loss = { side = \"after\" }", "a loss needs `probability`"),
    ("LINK loss = 0.1", "a loss is a table, not a number"),
    // Queues.
    (
        "LINK queue = { kind = \"fifo\", limit = \"9 packets\" }",
        "kind: \"fifo\" is none of drop-tail, red, priority, push-out and xcp",
    ),
    ("LINK queue = { kind = \"drop-tail\" }", "a queue needs `limit`"),
    (
        "LINK queue = { kind = \"drop-tail\", limit = 100 }",
        "a limit is a text with a unit, not a number; write it like \"100 packets\"",
    ),
    (
        "LINK queue = { kind = \"drop-tail\", limit = \"100\" }",
        "limit: \"100\" has no unit that a queue knows; write it like \"100 packets\"",
    ),
    (
        "LINK queue = { kind = \"drop-tail\", limit = \"0 packets\" }",
        "limit: \"0 packets\" is no number of packets; a link needs at least one",
    ),
    (
        "LINK queue = { kind = \"drop-tail\", limit = \"-3 packets\" }",
        "limit: \"-3 packets\" is negative",
    ),
    (
        "LINK queue = { kind = \"drop-tail\", limit = \"100B\" }",
        "limit: \"100B\" holds no packet of 1500 bytes",
    ),
    (
        "LINK queue = { kind = \"drop-tail\", limit = \"1 bdp\" }",
        "limit: \"1 bdp\" needs `rtt` beside it, such as rtt = \"80ms\"",
    ),
    (
        "LINK queue = { kind = \"red\", limit = \"9 packets\", min = \"5 packets\", max = \"2 packets\" }",
        "a RED queue needs `min` below `max`, and `max` not above `limit`",
    ),
    (
        "LINK queue = { kind = \"red\", limit = \"9 packets\", min = \"5KB\", max = \"7 packets\" }",
        "`limit`, `min` and `max` of a RED queue are all in packets, or none is",
    ),
    (
        "LINK queue = { kind = \"push-out\", limit = \"9 packets\", classes = 4, map = {} }",
        "classes: 4 is not between 2 and 3",
    ),
    (
        "LINK queue = { kind = \"push-out\", limit = \"9 packets\", map = { ef = 2 } }",
        "the class of ef: 2 is not between 0 and 1",
    ),
    (
        "LINK queue = { kind = \"push-out\", limit = \"9 packets\", map = { eff = 0 } }",
        "did you mean `ef`?",
    ),
    (
        "LINK queue = { kind = \"push-out\", limit = \"9 packets\", map = { 64 = 0 } }",
        "64 is no DSCP: they are from 0 to 63",
    ),
    (
        "LINK queue = { kind = \"priority\", map = {}, classes = [] }",
        "classes: a list of two or three queues, the highest class first",
    ),
    (
        "LINK queue = { kind = \"priority\", map = {}, classes = [{ kind = \"priority\" }, { kind = \"xcp\", limit = \"9 packets\" }] }",
        "a class of a priority queue cannot have classes of its own",
    ),
    // Names and ways.
    (
        "[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\n",
        "test.toml:4: \"a\" is there already; every host and router has its own name",
    ),
    ("[[host]]\nname = \"a b\"\n", "test.toml:2: \"a b\" is no name: 1 to 64 letters"),
    (
        "NODES\n[[link]]\nfrom = \"a\"\nto = \"rr\"\nrate = \"1mbit\"\ndelay = \"0\"\n",
        "test.toml:10: there is no host or router \"rr\"",
    ),
    (
        "[[host]]\nname = \"left\"\n[[link]]\nfrom = \"left\"\nto = \"lefft\"\n",
        "test.toml:5: there is no host or router \"lefft\": did you mean `left`?",
    ),
    (
        "NODES\n[[link]]\nfrom = \"a\"\nto = \"a\"\nrate = \"1mbit\"\ndelay = \"0\"\n",
        "test.toml:8: a link leads from one node to another",
    ),
    (
        "NODES\nLINKS\n[[host]]\nname = \"far\"\n",
        "test.toml:19: there is no way from \"a\" to \"far\"; hosts do not forward",
    ),
    ("[[host]]\nname = \"a\"\n", "test.toml:1: a topology needs at least two hosts"),
    ("", "test.toml:1: a topology needs at least two hosts"),
    (
        "file = \"x.toml\"\n[generate]\nkind = \"star\"\n",
        "test.toml:1: a topology starts from a `file` or from `generate`, not from both",
    ),
    // Changes.
    ("CHANGE rate = \"1mbit\"", "a change needs `link`"),
    (
        "CHANGE link = \"a\"\ndown = true",
        "link: \"a\" names no link; write it like \"a -> b\" or \"a <-> b\"",
    ),
    ("CHANGE link = \"a -> b\"\ndown = true", "link: there is no link \"a -> b\""),
    ("CHANGE link = \"a -> x\"\ndown = true", "there is no host or router \"x\""),
    (
        "CHANGE link = \"a -> r\"",
        "a change needs one of `rate`, `delay`, `loss`, `down = true` and `up = true`",
    ),
    (
        "CHANGE link = \"a -> r\"\ndown = true\nup = true",
        "a link goes `down` or `up`, not both at once",
    ),
    ("CHANGE label = \"core\"\ndown = true", "label: no link has the label \"core\""),
    (
        "CHANGE label = \"core\"\nlink = \"a -> r\"",
        "a change names its links by `link` or by `label`, not by both",
    ),
    // Generators.
    (
        "[generate]\nkind = \"star\"\nnodes = 1\n",
        "test.toml:3: nodes: 1 is not between 2 and 100000",
    ),
    ("[generate]\nkind = \"star\"\nnodes = -3\n", "nodes: -3 is not between 2 and 100000"),
    ("[generate]\nkind = \"star\"\nnodes = 2.5\n", "nodes: this is a number, not a whole number"),
    (
        "[generate]\nkind = \"mesh\"\ncore = { delay = [\"200ms\", \"5ms\"] }\n",
        "test.toml:3: delay: a range is [least, most]",
    ),
    (
        "[generate]\nkind = \"mesh\"\ncore = { loss = [0, 3] }\n",
        "loss: 3 is not between 0 and 1, as a probability is",
    ),
    ("[generate]\nkind = \"parking-lot\"\ncross = [4]\n", "cross: 4 is not between 1 and 3"),
    (
        "[generate]\nkind = \"power-law\"\nbandwidth = \"hihg\"\n",
        "bandwidth: \"hihg\" is none of low, medium, high and bullet-prime: did you mean `high`?",
    ),
    (
        "[generate]\nkind = \"matrix\"\nnames = [\"a\", \"b\"]\nunit = \"mbit\"\nrows = \"senders\"\nrates = [[1, 2]]\n",
        "test.toml:6: rates: 1 rows for 2 names",
    ),
    (
        "[generate]\nkind = \"matrix\"\nnames = [\"a\", \"b\"]\nunit = \"mbit\"\nrows = \"senders\"\nrates = [[1, 2], [\"-\", 1]]\n",
        "rates: from b to a nothing was measured; `missing = \"mirror\"` takes the way back's rate",
    ),
    (
        "[generate]\nkind = \"matrix\"\nnames = [\"a\", \"a\"]\nunit = \"mbit\"\nrows = \"senders\"\nrates = [[1, 2], [1, 1]]\n",
        "test.toml:3: names: \"a\" is there already",
    ),
];

/// The shorthands of the table, written out.
fn written_out(text: &str) -> String {
    if let Some(attribute) = text.strip_prefix("LINK ") {
        let key = attribute.split(' ').next().unwrap();
        let text = link_with(attribute);
        // What the test sets replaces what was there.
        let first = format!("{key} = \"");
        let is_double = |key| key == "rate" || key == "delay";
        return match text.find(&first).filter(|_| is_double(key)) {
            Some(at) => {
                let end = at + text[at..].find('\n').unwrap() + 1;
                format!("{}{}", &text[..at], &text[end..])
            }
            None => text,
        };
    }
    if let Some(change) = text.strip_prefix("CHANGE ") {
        return format!("{NODES}{LINKS}[[change]]\nat = \"1s\"\n{change}\n");
    }
    text.replace("NODES\n", NODES).replace("LINKS\n", LINKS)
}

#[test]
fn every_mistake_gets_one_sentence_with_its_line_and_the_nearest_spelling() {
    let mut wrong = Vec::new();
    for (text, expected) in MISTAKES {
        let text = written_out(text);
        let said = error(&text);
        if !said.contains(expected) {
            wrong.push(format!("said: {said}\nnot:  {expected}\n"));
        }
        assert!(!said.contains('\n'), "one line: {said}");
        let line = said.split(':').nth(1).unwrap().parse::<usize>().unwrap();
        assert!((1..=text.lines().count().max(1)).contains(&line), "{said}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_name_of_a_dscp_is_known_in_both_cases() {
    for (name, value) in [("EF", 46), ("af11", 10), ("AF43", 38), ("cs7", 56), ("be", 0), ("7", 7)]
    {
        assert_eq!(queue::dscp(name), Ok(value), "{name}");
    }
    assert!(queue::dscp("af44").is_err());
}

#[test]
fn a_delay_of_nothing_needs_no_unit() {
    let net = parse(&link_with("").replacen("\"5ms\"", "\"0\"", 1));
    assert_eq!(net.links[0].delay, Duration::ZERO);
}
