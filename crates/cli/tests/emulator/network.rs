//! What programs find in the network: names, delays, rates, losses, priorities.

use crate::stage::{Running, Stage, dumbbell, link, number, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

const PLAIN: &str =
    "rate = \"20mbit\"\ndelay = \"18ms\"\nqueue = { kind = \"drop-tail\", limit = \"100ms\" }";

#[test]
fn a_ping_takes_the_round_trip_of_the_topology_in_both_families() {
    let Some(stage) = Stage::new(&["ping"]) else { return };
    let script = "left1: ping -nqc 5 -i 0.1 right1 && right1: ping -nqc 5 -i 0.1 left1.v6";
    let (output, stats) = stage.run(&dumbbell(1, PLAIN), script);
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next())
        .map(|time| time.parse().unwrap())
        .collect();
    assert_eq!(times.len(), 2, "{output}");
    // 2 × (1 + 18 + 1) ms, and 0.1 ms of sending; the rest is the machine.
    assert!(times.iter().all(|time| (40.0..42.0).contains(time)), "{times:?}");
    assert_eq!(number(link(&stats, "left", "right"), "classes.0.arrived.packets"), 10.0);
    assert_eq!(number(&stats, "hosts.0.packets_sent"), 10.0);
}

#[test]
fn tcp_fills_a_link_of_20_megabits_and_no_more() {
    let Some(stage) = Stage::new(&["iperf3"]) else { return };
    let script =
        "right1: iperf3 -s -1 >/dev/null & sleep 0.3; left1: iperf3 -J -t 4 -O 1 -c right1; wait";
    let (output, stats) = stage.run(&dumbbell(1, PLAIN), script);
    let result: Value = serde_json::from_str(&output).unwrap();
    let goodput = number(&result, "end.sum_received.bits_per_second") / 1e6;
    // 1448 of 1500 bytes are payload. iperf3's seconds at the receiver begin a little late, and
    // what waited in the queue then counts: 100 ms of 4 s.
    let most = 20.0 * 1448.0 / 1500.0;
    assert!((0.85 * most..1.03 * most).contains(&goodput), "{goodput} Mb/s of {most}");
    assert_eq!(result["end"]["sender_tcp_congestion"], "cubic", "as the topology says");
    let bottleneck = link(&stats, "left", "right");
    let sent = number(bottleneck, "classes.0.sent.bytes") * 8.0 / number(&stats, "seconds");
    assert!(sent <= 20e6 * 1.001, "{sent} b/s");
    assert!(number(bottleneck, "classes.0.queue_peak.bytes") <= 250_000.0, "100 ms of the rate");
}

#[test]
fn as_many_packets_are_lost_as_the_statistics_say_and_the_topology_asks_for() {
    let Some(stage) = Stage::new(&["ping"]) else { return };
    let lossy = "rate = \"20mbit\"\ndelay = \"1ms\"\n\
                 loss = { probability = 0.1, side = \"after\", direction = \"there\" }\n\
                 queue = { kind = \"drop-tail\", limit = \"100 packets\" }";
    let script = "left1: ping -nqc 1000 -i 0.002 -W 1 right1 || true";
    let (output, stats) = stage.run(&dumbbell(1, lossy), script);
    let received = output.split(" received").next().and_then(|text| text.rsplit(' ').next());
    let received: f64 = received.unwrap().parse().unwrap();
    let there = link(&stats, "left", "right");
    let lost: f64 = there["classes"][0]["dropped"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| number(count, "packets"))
        .sum();
    assert_eq!(received + lost, 1000.0, "{output} {there}");
    // 100 expected; the standard deviation is 9.5.
    assert!((50.0..150.0).contains(&lost), "{lost}");
    assert_eq!(number(link(&stats, "right", "left"), "classes.0.arrived.packets"), received);
}

#[test]
fn a_higher_class_that_fills_the_link_starves_the_lower_one() {
    let Some(stage) = Stage::new(&["iperf3"]) else { return };
    let priority = "rate = \"10mbit\"\ndelay = \"5ms\"\n\
                    [generate.bottleneck.queue]\nkind = \"priority\"\nmap = { ef = 0, other = 1 }\n\
                    classes = [\n{ kind = \"drop-tail\", limit = \"20 packets\" },\n\
                    { kind = \"drop-tail\", limit = \"20 packets\" },\n]";
    // 9 Mb/s of each on a link of 10: all of the higher class and one ninth of the lower.
    let script = "right1: iperf3 -s -1 >/dev/null & right2: iperf3 -s -1 >/dev/null & sleep 0.3; \
                  left1: iperf3 -u -l 1200 -b 8.8M -S 184 -t 3 -c right1 >/dev/null & \
                  left2: iperf3 -u -l 1200 -b 8.8M -t 3 -c right2 >/dev/null; wait";
    let (_, stats) = stage.run(&dumbbell(2, priority), script);
    let classes = &link(&stats, "left", "right")["classes"];
    let share = |class: usize| {
        number(&classes[class], "arrived.bytes") / number(&classes[class], "offered.bytes")
    };
    assert!(number(&classes[0], "offered.bytes") > 2.5e6, "DSCP 46 came through: {classes}");
    assert!(share(0) > 0.97, "{classes}");
    assert!(share(1) < 0.4, "{classes}");
    assert!(number(&classes[1], "dropped.full.packets") > 500.0, "{classes}");
}

#[test]
fn packets_for_a_narrow_link_are_cut_to_size_by_the_sender() {
    let Some(stage) = Stage::new(&["ping"]) else { return };
    let narrow = format!("{PLAIN}\nmtu = 1000");
    let script =
        "left1: ping -nc 1 -M do -s 1200 right1 2>&1; left1: ping -nqc 1 -M do -s 972 right1";
    let (output, stats) = stage.run(&dumbbell(1, &narrow), script);
    assert!(output.contains("essage too long"), "{output}");
    assert!(output.contains("1 packets transmitted, 1 received"), "{output}");
    assert_eq!(link(&stats, "left", "right")["classes"][0]["dropped"], serde_json::json!({}));
}

#[test]
fn a_run_in_which_the_emulator_could_not_keep_up_is_invalid_and_says_why() {
    let Some(stage) = Stage::new(&["iperf3"]) else { return };
    let mut command = stage.emu(&dumbbell(1, PLAIN));
    let started = stage.path("started");
    let script = stage.script(&format!(
        "right1: iperf3 -s -1 >/dev/null & sleep 0.3; touch {}; \
         left1: iperf3 -u -l 64 -b 50M -t 3 -c right1 >/dev/null; true",
        started.display()
    ));
    command.args(["--", "sh", "-c", &script]);
    let running = Running::start(command);
    wait_until("the start of the traffic", || started.exists());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal(Signal::SIGSTOP);
    std::thread::sleep(std::time::Duration::from_millis(700));
    running.signal(Signal::SIGCONT);
    let output = running.output();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let stats = stage.stats();
    assert_eq!(stats["valid"], false, "{stats}");
    assert!(number(&stats, "hosts.0.device_dropped_out") > 0.0, "{stats}");
    assert!(text.contains("invalid: the device of left1 dropped"), "{text}");
    assert!(number(&stats, "emulator.lateness_us.max") > 500e3, "{stats}");
}
