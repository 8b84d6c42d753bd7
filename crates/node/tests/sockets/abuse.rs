//! What strangers can do to the port: nothing much.

use crate::common::{Place, b3, fetch, options, within};
use anabranch_node::{Node, System};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn address(node: &Node) -> SocketAddr {
    node.addresses()[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_port_is_hung_up_on_and_harms_nobody() {
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 500_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let pieces: [&[u8]; 4] = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            &[0; 5000],
            &[22, 3, 1, 0xff, 0xff, 1, 2, 3],
            &[22, 3, 1, 0, 4, 1, 0, 0, 0],
        ];
        for piece in pieces {
            let mut stream = TcpStream::connect(address(&source)).await.unwrap();
            stream.write_all(piece).await.unwrap();
            let mut answer = Vec::new();
            let closed =
                tokio::time::timeout(Duration::from_secs(7), stream.read_to_end(&mut answer));
            // A TLS alert at most; a reset is as good an end.
            let _ = closed.await.expect("a stranger must be hung up on");
            assert!(answer.len() <= 7, "{answer:?}");
        }
        let (node, _, path) = fetch(&place, "out", &shared.ticket()).await;
        assert_eq!(b3(&path), b3(&file));
        node.close().await;
        source.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_that_say_nothing_do_not_keep_a_receiver_out() {
    within(60, async {
        let place = Place::new();
        let file = place.file("file", 3_000_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..1000 {
            silent.push(TcpStream::connect(address(&source)).await.unwrap());
        }
        let (node, _, path) = fetch(&place, "out", &shared.ticket()).await;
        assert_eq!(b3(&path), b3(&file));
        // All but the few that may wait are hung up on already.
        let mut open = 0;
        for stream in &mut silent {
            let mut byte = [0];
            let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte));
            open += u32::from(read.await.is_err());
        }
        assert!(open <= 64, "{open} still open");
        node.close().await;
        source.close().await;
    })
    .await;
}
