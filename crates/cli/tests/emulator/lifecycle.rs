//! What the emulator makes on the machine, and that nothing of it stays.

use crate::stage::{Running, Stage, dumbbell, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

const PLAIN: &str =
    "rate = \"20mbit\"\ndelay = \"2ms\"\nqueue = { kind = \"drop-tail\", limit = \"100ms\" }";

#[test]
fn a_program_finds_names_and_congestion_control_as_the_topology_says() {
    let Some(stage) = Stage::new(&[]) else { return };
    let script = "left1: getent ahosts right1; \
                  left1: cat /proc/sys/net/ipv4/tcp_congestion_control; \
                  left1: cat /sys/class/net/emu0/mtu; echo $ANABRANCH_EMU_HOSTS";
    let (output, stats) = stage.run(&dumbbell(1, PLAIN), script);
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("10.0.0.2 "), "{output}");
    assert!(lines.contains(&"cubic") && lines.contains(&"1500"), "{output}");
    assert_eq!(lines.last(), Some(&"left1=10.0.0.1 right1=10.0.0.2"));
    assert_eq!(stats["hosts"][1]["namespace"], format!("{}right1", stage.prefix));
    assert!(stage.traces().is_empty(), "{:?}", stage.traces());
}

#[test]
fn the_commands_exit_code_is_passed_on_and_its_output_kept_from_the_events() {
    let Some(stage) = Stage::new(&[]) else { return };
    assert_eq!(stage.output(&dumbbell(1, PLAIN), "exit 7").status.code(), Some(7));
    assert_eq!(stage.output(&dumbbell(1, PLAIN), "kill -9 $$").status.code(), Some(137));
    let mut command = stage.emu(&dumbbell(1, PLAIN));
    command.args(["--json", "--", "sh", "-c", "echo said; exit 3"]);
    let output = Running::start(command).output();
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["command_code"]), (&"result".into(), &3.into()));
    assert_eq!(last["links"].as_array().unwrap().len(), 6);
    assert_eq!(events[0]["event"], "emulating");
    assert!(String::from_utf8_lossy(&output.stderr).contains("said"));
    assert!(stage.traces().is_empty());
}

#[test]
fn the_command_ends_with_an_emulator_that_is_killed() {
    let Some(stage) = Stage::new(&[]) else { return };
    let mut command = stage.emu(&dumbbell(1, PLAIN));
    let script = format!("echo $$ >{}; exec sleep 1000", stage.path("pid").display());
    command.args(["--", "sh", "-c", &script]);
    let emulator = Running::start(command);
    let sleeper = wait_for_pid(&stage);
    emulator.kill();
    wait_until("the end of the command", || !is_alive(sleeper));
    assert!(stage.output(&dumbbell(1, PLAIN), "true").status.success());
    assert!(stage.traces().is_empty());
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_with_its_processes() {
    let Some(stage) = Stage::new(&[]) else { return };
    let killed = in_the_network(&stage, "left1: sleep 1000");
    let sleeper = wait_for_pid(&stage);
    killed.kill();
    assert!(!stage.traces().is_empty(), "a killed process cannot clean up");
    assert!(is_alive(sleeper));
    let output = stage.output(&dumbbell(1, PLAIN), "true");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("removed 2 namespaces"), "{text}");
    assert!(stage.traces().is_empty());
    wait_until("the end of what ran there", || !is_alive(sleeper));
}

#[test]
fn two_runs_at_once_need_different_prefixes_and_leave_each_other_alone() {
    let Some(stage) = Stage::new(&["ping"]) else { return };
    let first = in_the_network(&stage, "left1: sleep 1000");
    let sleeper = wait_for_pid(&stage);
    let clash = stage.output(&dumbbell(1, PLAIN), "true");
    let text = String::from_utf8_lossy(&clash.stderr);
    assert_eq!(clash.status.code(), Some(2), "{text}");
    assert!(text.contains("--prefix"), "{text}");
    let prefix = format!("{}b-", stage.prefix);
    let mut other = stage.emu_with_prefix(&prefix, &dumbbell(1, PLAIN));
    other.args(["--", "ip", "netns", "exec", &format!("{prefix}left1")]);
    other.args(["ping", "-nqc", "1", "right1"]);
    let other = Running::start(other).output();
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
    assert!(is_alive(sleeper), "the first run goes on");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.output().status.code(), Some(130));
    assert!(!is_alive(sleeper) && stage.traces().is_empty());
}

#[test]
fn ctrl_c_is_the_regular_end_without_a_command_and_removes_everything() {
    let Some(stage) = Stage::new(&[]) else { return };
    let running = Running::start(stage.emu(&dumbbell(1, PLAIN)));
    wait_until("the namespaces", || stage.traces().len() == 4);
    // The files are there before the hosts are ready; an early signal must do as well.
    running.signal(Signal::SIGINT);
    let output = running.output();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(stage.traces().is_empty());
    assert_eq!(stage.stats()["valid"], true);
}

#[test]
fn what_cannot_run_is_refused_in_one_sentence_and_makes_nothing() {
    let Some(stage) = Stage::new(&[]) else { return };
    let unknown = dumbbell(1, PLAIN).replace("cubic", "no-such-control");
    let deaf = dumbbell(1, PLAIN).replace("20mbit", "20");
    let mut without_tools = stage.emu(&dumbbell(1, PLAIN));
    without_tools.env("PATH", "/nonexistent").args(["--", "/bin/true"]);
    let cases = [
        (stage.output(&deaf, "true"), 2, ".toml:6: rate"),
        (stage.output(&unknown, "true"), 8, "no-such-control"),
        (stage.output(&dumbbell(800, PLAIN), "true"), 2, "1600 hosts"),
        (Running::start(without_tools).output(), 8, "install iproute2"),
    ];
    for (output, code, word) in cases {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(word) && text.lines().count() == 1, "{text}");
    }
    assert!(stage.traces().is_empty());
}

/// An emulator in which a script runs that leaves its process id behind.
fn in_the_network(stage: &Stage, script: &str) -> Running {
    let mut command = stage.emu(&dumbbell(1, PLAIN));
    let pid = stage.path("pid");
    let script = format!("{} & echo $! >{} ; wait", stage.script(script), pid.display());
    command.args(["--", "sh", "-c", &script]);
    Running::start(command)
}

fn wait_for_pid(stage: &Stage) -> i32 {
    let path = stage.path("pid");
    let read = || std::fs::read_to_string(&path).ok()?.trim().parse().ok();
    wait_until("the process in the network", || read().is_some());
    let pid = read().unwrap();
    // `ip` goes into the namespace and becomes the program.
    wait_until("the program", || name_of(pid).as_deref() == Some("sleep"));
    pid
}

fn name_of(pid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// A process that has ended but was not waited for has no place of its own any more.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}
