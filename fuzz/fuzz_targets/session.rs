//! Sessions: any order of well-formed frames is answered or refused, never a panic.
#![no_main]

use anabranch_proto::link::frame::{HEAD_LEN, Head};
use anabranch_proto::link::{LinkConfig, Session};
use anabranch_proto::time::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut session = Session::new(LinkConfig::default(), Time::ZERO);
    let mut rest = bytes;
    while let Ok(Some(head)) = Head::decode(rest) {
        let body = if head.is_fragment() { 0 } else { head.body_len() };
        let Some(end) = rest.get(HEAD_LEN..HEAD_LEN + body) else { return };
        let Ok(frame) = head.frame(end) else { return };
        rest = &rest[HEAD_LEN + body..];
        if session.handle_frame(Time::ZERO, frame).is_err() {
            return;
        }
        while session.poll_event().is_some() {}
        while session.poll_transmit().is_some() {}
    }
});
