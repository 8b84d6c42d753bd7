//! The library in a page: `copy send PATH` shares, `copy get TICKET DIR` fetches. At the end each
//! says on stderr what processor time it took.
//!
//! `cargo run --release -p anabranch-node --example copy -- send FILE`

use anabranch_node::{Event, FetchOptions, Node, NodeConfig, ShareOptions, System};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match arguments[..] {
        ["send", path] => runtime.block_on(send(path, System::default())),
        ["send", path, system] => runtime.block_on(send(path, system.parse()?)),
        ["get", ticket, dir] => runtime.block_on(get(ticket, dir)),
        _ => Err("copy send PATH [SYSTEM] | copy get TICKET DIR".into()),
    }
}

async fn node() -> Result<Node, Box<dyn Error>> {
    let state = NodeConfig::state_dir_default().ok_or("HOME is not set")?;
    let mut config = NodeConfig::new(state);
    config.advertise = vec!["127.0.0.1".to_string()];
    Ok(Node::bind(config).await?)
}

async fn send(path: &str, system: System) -> Result<(), Box<dyn Error>> {
    let node = node().await?;
    let options = ShareOptions { system, ..ShareOptions::default() };
    let group = node.share(Path::new(path), options).await?;
    println!("{}", group.ticket());
    let before = cpu_seconds();
    let mut events = group.events();
    loop {
        tokio::select! {
            event = events.recv() => if let Event::Outcome(outcome) = event? {
                eprintln!("{outcome:?}");
            },
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    report("send", group.progress().uploaded, before);
    node.close().await;
    Ok(())
}

async fn get(ticket: &str, dir: &str) -> Result<(), Box<dyn Error>> {
    let node = node().await?;
    let started = Instant::now();
    let before = cpu_seconds();
    let group = node.fetch(ticket.parse()?, FetchOptions::new(dir.into())).await?;
    let path = group.wait_complete().await?;
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{} after {seconds:.3} s", path.display());
    report("get", group.progress().bytes_done, before);
    if std::env::var_os("LINGER").is_some() {
        tokio::signal::ctrl_c().await?;
        report("get and serve", group.progress().bytes_done, before);
    }
    node.close().await;
    Ok(())
}

/// User and system seconds so far.
fn cpu_seconds() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
    usage.map_or((0.0, 0.0), |usage| (seconds(usage.user_time()), seconds(usage.system_time())))
}

fn report(what: &str, bytes: u64, before: (f64, f64)) {
    let now = cpu_seconds();
    let (user, system) = (now.0 - before.0, now.1 - before.1);
    let gigabytes = bytes as f64 / 1e9;
    eprintln!(
        "{what}: {gigabytes:.3} GB, {user:.3} s user, {system:.3} s system, {:.3} s/GB",
        (user + system) / gigabytes
    );
}
