//! Rate limits hold within 5% of wire bytes.

use crate::common::{Place, options, within};
use anabranch_node::{Group, Node, Progress, System};
use std::time::{Duration, Instant};

const RATE: u64 = 3_000_000;

/// Wire bytes per second as `bytes` counts them, over some four seconds in mid-transfer.
async fn rate(group: &Group, bytes: impl Fn(&Progress) -> u64) -> f64 {
    while bytes(&group.progress()) < RATE / 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Progress is brought up to date twice a second: measure between two such moments.
    let next = async |last: u64| loop {
        let now = bytes(&group.progress());
        if now != last {
            return (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let (first, begun) = next(bytes(&group.progress())).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (last, ended) = next(bytes(&group.progress())).await;
    (last - first) as f64 / (ended - begun).as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_sending_holds_for_all_links_together() {
    within(40, async {
        let place = Place::new();
        let file = place.file("file", 12_000_000);
        let mut config = place.config();
        config.limit_up = Some(RATE);
        let source = Node::bind(config).await.unwrap();
        let shared = source.share(&file, options(System::Star)).await.unwrap();
        let mut receivers = Vec::new();
        for name in ["a", "b"] {
            let node = place.node().await;
            let group = node.fetch(shared.ticket(), place.out(name)).await.unwrap();
            receivers.push((node, group));
        }
        let rate = rate(&shared, |progress| progress.wire_up).await;
        assert!((rate / RATE as f64 - 1.0).abs() < 0.05, "{rate}");
        for (node, group) in receivers {
            // Neither link starves.
            let share = group.progress().bytes_done as f64 / shared.progress().uploaded as f64;
            assert!(share > 0.25, "{share}");
            node.close().await;
        }
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_receiving_holds() {
    within(40, async {
        let place = Place::new();
        let file = place.file("file", 24_000_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::Star)).await.unwrap();
        let mut config = place.config();
        config.limit_down = Some(RATE);
        let receiver = Node::bind(config).await.unwrap();
        let group = receiver.fetch(shared.ticket(), place.out("out")).await.unwrap();
        let rate = rate(&group, |progress| progress.wire_down).await;
        assert!((rate / RATE as f64 - 1.0).abs() < 0.05, "{rate}");
        receiver.close().await;
        source.close().await;
    })
    .await;
}
