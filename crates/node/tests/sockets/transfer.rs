//! Whole transfers: what comes is what was shared.

use crate::common::{Place, b3, fetch, options, within};
use anabranch_node::{Event, Node, System};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_receivers_get_a_file_from_a_star_and_the_source_hears_of_each() {
    within(30, three_receivers(System::Star)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_receivers_get_a_file_by_bullet_prime_and_the_source_hears_of_each() {
    within(30, three_receivers(System::BulletPrime)).await;
}

async fn three_receivers(system: System) {
    let place = Place::new();
    let file = place.file("file", 5_000_001);
    let source = place.node().await;
    let shared = source.share(&file, options(system)).await.unwrap();
    let mut events = shared.events();
    let ticket = shared.ticket();
    let (a, b, c) = tokio::join!(
        fetch(&place, "a", &ticket),
        fetch(&place, "b", &ticket),
        fetch(&place, "c", &ticket)
    );
    for (_, group, path) in [&a, &b, &c] {
        assert_eq!(b3(path), b3(&file));
        let progress = group.progress();
        assert_eq!(progress.bytes_done, 5_000_001);
        assert_eq!(progress.from_source + progress.from_peers, 5_000_001);
    }
    let mut outcomes = 0;
    while outcomes < 3 {
        if let Event::Outcome(outcome) = events.recv().await.unwrap() {
            assert_eq!(outcome.bytes_from_source + outcome.bytes_from_peers, 5_000_001);
            outcomes += 1;
        }
    }
    tokio::join!(source.close(), a.0.close(), b.0.close(), c.0.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_tiny_and_exactly_cut_files_arrive() {
    within(30, async {
        let place = Place::new();
        let source = place.node().await;
        for len in [0, 1, 16 * 1024, 64 * 1024, 64 * 1024 + 1] {
            let file = place.file(&format!("file{len}"), len);
            let shared = source.share(&file, options(System::default())).await.unwrap();
            let (node, _, path) = fetch(&place, &format!("out{len}"), &shared.ticket()).await;
            assert_eq!(std::fs::read(path).unwrap(), std::fs::read(&file).unwrap());
            node.close().await;
        }
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_arrives_with_all_its_files() {
    within(30, async {
        let place = Place::new();
        let dir = place.path("tree");
        std::fs::create_dir_all(dir.join("deep/er")).unwrap();
        for index in 0..40 {
            let file = place.file(&format!("f{index}"), 1 + index * 7_000);
            std::fs::rename(file, dir.join(format!("deep/er/f{index}"))).unwrap();
        }
        let source = place.node().await;
        let shared = source.share(&dir, options(System::default())).await.unwrap();
        let (node, _, path) = fetch(&place, "out", &shared.ticket()).await;
        for index in 0..40 {
            let name = format!("deep/er/f{index}");
            assert_eq!(b3(&path.join(&name)), b3(&dir.join(&name)));
        }
        source.close().await;
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_accepts_no_inbound_connection_gets_the_file() {
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 2_000_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let mut config = place.config();
        config.accept_inbound = false;
        let node = Node::bind(config).await.unwrap();
        assert_eq!(node.addresses(), []);
        let group = node.fetch(shared.ticket(), place.out("out")).await.unwrap();
        assert_eq!(b3(&group.wait_complete().await.unwrap()), b3(&file));
        assert_eq!(group.ticket().contacts, shared.ticket().contacts);
        source.close().await;
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_crosses_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no IPv6 loopback");
        return;
    }
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 1_000_000);
        let mut config = place.config();
        config.listen = Some("[::1]:0".parse().unwrap());
        let source = Node::bind(config).await.unwrap();
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let (node, _, path) = fetch(&place, "out", &shared.ticket()).await;
        assert_eq!(b3(&path), b3(&file));
        source.close().await;
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_shares_and_fetches_several_contents_at_once() {
    within(30, async {
        let place = Place::new();
        let (first, second) = (place.file("first", 900_000), place.file("second", 700_000));
        let (here, there) = (place.node().await, place.node().await);
        let a = here.share(&first, options(System::Star)).await.unwrap();
        let b = there.share(&second, options(System::Star)).await.unwrap();
        let to_there = there.fetch(a.ticket(), place.out("there")).await.unwrap();
        let to_here = here.fetch(b.ticket(), place.out("here")).await.unwrap();
        assert_eq!(b3(&to_there.wait_complete().await.unwrap()), b3(&first));
        assert_eq!(b3(&to_here.wait_complete().await.unwrap()), b3(&second));
        here.close().await;
        there.close().await;
    })
    .await;
}
