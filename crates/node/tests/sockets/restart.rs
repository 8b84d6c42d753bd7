//! A source that returns, a receiver that returns, a source that stays away.

use crate::common::{Place, b3, fetch, options, within};
use anabranch_node::{Node, NodeConfig, System};

fn anywhere(place: &Place) -> NodeConfig {
    let mut config = place.config();
    // The default port or the next free one, reached over loopback.
    config.listen = None;
    config.advertise = vec!["127.0.0.1".into()];
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_source_keeps_its_ticket_even_when_the_default_port_is_free_again() {
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 300_000);
        let first_come = Node::bind(anywhere(&place)).await.unwrap();
        let source = Node::bind(anywhere(&place)).await.unwrap();
        let ticket = source.share(&file, options(System::default())).await.unwrap().ticket();
        source.close().await;
        first_come.close().await;
        let source = Node::bind(anywhere(&place)).await.unwrap();
        let again = source.share(&file, options(System::default())).await.unwrap();
        assert_eq!(again.ticket(), ticket);
        let (node, _, path) = fetch(&place, "out", &ticket).await;
        assert_eq!(b3(&path), b3(&file));
        node.close().await;
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_was_interrupted_fetches_only_the_rest() {
    within(60, async {
        let place = Place::new();
        let file = place.file("file", 4_000_000);
        let mut config = place.config();
        config.limit_up = Some(2_000_000);
        let source = Node::bind(config).await.unwrap();
        let shared = source.share(&file, options(System::Star)).await.unwrap();
        let receiver = place.node().await;
        let group = receiver.fetch(shared.ticket(), place.out("out")).await.unwrap();
        while group.progress().bytes_done < 1_000_000 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        receiver.close().await;
        let receiver = place.node().await;
        let group = receiver.fetch(shared.ticket(), place.out("out")).await.unwrap();
        assert_eq!(b3(&group.wait_complete().await.unwrap()), b3(&file));
        let progress = group.progress();
        assert!(progress.bytes_before >= 1_000_000);
        assert_eq!(progress.from_source + progress.bytes_before, 4_000_000);
        receiver.close().await;
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_whose_source_is_killed_goes_on_when_it_returns() {
    within(60, async {
        let place = Place::new();
        let file = place.file("file", 3_000_000);
        let mut config = place.config();
        config.limit_up = Some(1_500_000);
        config.listen = None;
        config.advertise = vec!["127.0.0.1".into()];
        let source = Node::bind(config.clone()).await.unwrap();
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let ticket = shared.ticket();
        let receiver = place.node().await;
        let group = receiver.fetch(ticket.clone(), place.out("out")).await.unwrap();
        while group.progress().bytes_done < 500_000 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        source.close().await;
        let source = Node::bind(config).await.unwrap();
        let again = source.share(&file, options(System::default())).await.unwrap();
        assert_eq!(again.ticket().contacts[0], ticket.contacts[0]);
        assert_eq!(b3(&group.wait_complete().await.unwrap()), b3(&file));
        receiver.close().await;
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_receiver_gets_everything_from_a_finished_one_when_the_source_is_gone() {
    within(60, async {
        let place = Place::new();
        let file = place.file("file", 2_000_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::BulletPrime)).await.unwrap();
        let (first, group, _) = fetch(&place, "first", &shared.ticket()).await;
        source.close().await;
        let (late, late_group, path) = fetch(&place, "late", &group.ticket()).await;
        assert_eq!(b3(&path), b3(&file));
        assert_eq!(late_group.progress().from_peers, 2_000_000);
        first.close().await;
        late.close().await;
    })
    .await;
}
