//! Who does not belong is refused, and told so by exit class.

use crate::common::{Place, options, within};
use anabranch_node::{ErrorKind, FetchError, System};
use std::time::Instant;

#[tokio::test]
async fn a_wrong_secret_and_a_wrong_key_are_refused() {
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 100_000);
        let source = place.node().await;
        let shared = source.share(&file, options(System::default())).await.unwrap();
        let receiver = place.node().await;
        let mut ticket = shared.ticket();
        ticket.secret.0[0] ^= 1;
        let error = receiver.fetch(ticket, place.out("out")).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused), "{error}");
        assert_eq!(error.kind(), ErrorKind::Refused);
        let mut ticket = shared.ticket();
        ticket.contacts[0].id.0[0] ^= 1;
        let error = receiver.fetch(ticket, place.out("out")).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused), "{error}");
        // The refusals left nothing behind: the right ticket works.
        let group = receiver.fetch(shared.ticket(), place.out("out")).await.unwrap();
        group.wait_complete().await.unwrap();
        source.close().await;
        receiver.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_unreachable_within_some_ten_seconds() {
    within(30, async {
        let place = Place::new();
        let file = place.file("file", 1_000);
        let source = place.node().await;
        let ticket = source.share(&file, options(System::default())).await.unwrap().ticket();
        source.close().await;
        let receiver = place.node().await;
        let started = Instant::now();
        let error = receiver.fetch(ticket, place.out("out")).await.unwrap_err();
        assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
        assert_eq!(error.kind().exit_code(), 3);
        assert!((8..14).contains(&started.elapsed().as_secs()));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_shared_is_refused_with_its_name() {
    within(10, async {
        let place = Place::new();
        let source = place.node().await;
        let missing = place.path("missing");
        let error = source.share(&missing, options(System::default())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("missing"), "{error}");
        let file = place.file("file", 10);
        let _group = source.share(&file, options(System::default())).await.unwrap();
        let error = source.share(&file, options(System::default())).await.unwrap_err();
        assert!(error.to_string().contains("shared by another"), "{error}");
    })
    .await;
}
