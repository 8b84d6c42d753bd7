//! Frames: what is read is within its bounds and is written so that it is read the same.
#![no_main]

use anabranch_proto::link::frame::{Frame, HEAD_LEN, Head};
use libfuzzer_sys::fuzz_target;

/// The frame at the beginning of `bytes`, if it is whole.
fn read(bytes: &[u8]) -> Option<Frame> {
    let head = Head::decode(bytes).ok()??;
    let body = if head.is_fragment() { 0 } else { head.body_len() };
    head.frame(bytes.get(HEAD_LEN..HEAD_LEN + body)?).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(frame) = read(bytes) else { return };
    if matches!(frame, Frame::Unknown { .. }) {
        return;
    }
    let mut written = Vec::new();
    frame.encode(&mut written);
    assert_eq!(read(&written), Some(frame));
});
