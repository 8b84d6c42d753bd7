//! Frames out of a stream of bytes that comes in arbitrary portions.

use anabranch_proto::link::frame::{Frame, FrameError, HEAD_LEN, Head};

/// Takes what a [`FrameReader`] finds.
pub(crate) trait FrameSink {
    type Error: From<FrameError>;
    /// A frame; a fragment's payload follows in portions.
    fn frame(&mut self, frame: Frame) -> Result<(), Self::Error>;
    /// The next bytes of the fragment's payload; `end` with its last.
    fn payload(&mut self, bytes: &[u8], end: bool) -> Result<(), Self::Error>;
}

/// Where in a frame the stream is.
#[derive(Debug)]
enum State {
    Head,
    Body(Head),
    Payload { left: usize },
}

/// Cuts a stream into frames. Payload is passed on as it lies; heads and bodies that span
/// portions are put together here.
#[derive(Debug)]
pub(crate) struct FrameReader {
    state: State,
    /// The part of a head or body that came so far.
    partial: Vec<u8>,
    body_len_max: usize,
}

impl FrameReader {
    /// A reader that refuses bodies longer than `body_len_max` (fragments excepted).
    pub(crate) fn new(body_len_max: usize) -> FrameReader {
        FrameReader { state: State::Head, partial: Vec::new(), body_len_max }
    }

    /// Takes in the next bytes of the stream.
    pub(crate) fn feed<S: FrameSink>(
        &mut self,
        mut bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), S::Error> {
        while !bytes.is_empty() {
            match self.state {
                State::Payload { left } => {
                    let (now, rest) = bytes.split_at(left.min(bytes.len()));
                    let left = left - now.len();
                    self.state = if left == 0 { State::Head } else { State::Payload { left } };
                    sink.payload(now, left == 0)?;
                    bytes = rest;
                }
                State::Head => {
                    let Some(whole) = take(&mut self.partial, &mut bytes, HEAD_LEN) else {
                        return Ok(());
                    };
                    let head = Head::decode(whole)?;
                    self.partial.clear();
                    if let Some(head) = head {
                        self.begin(head, sink)?;
                    }
                }
                State::Body(head) => {
                    let Some(body) = take(&mut self.partial, &mut bytes, head.body_len()) else {
                        return Ok(());
                    };
                    let frame = head.frame(body)?;
                    self.partial.clear();
                    self.state = State::Head;
                    sink.frame(frame)?;
                }
            }
        }
        Ok(())
    }

    fn begin<S: FrameSink>(&mut self, head: Head, sink: &mut S) -> Result<(), S::Error> {
        let len = head.body_len();
        if head.is_fragment() {
            sink.frame(head.frame(&[])?)?;
            self.state = State::Payload { left: len };
        } else if len == 0 {
            sink.frame(head.frame(&[])?)?;
        } else if len > self.body_len_max {
            return Err(S::Error::from(FrameError::TooLong { kind: 0, len: len as u32 }));
        } else {
            self.state = State::Body(head);
        }
        Ok(())
    }
}

/// The next `len` bytes, from `bytes` alone when they are all there, else put together in
/// `partial`; `None` when they are not complete yet.
fn take<'a, 'b: 'a>(
    partial: &'a mut Vec<u8>,
    bytes: &mut &'b [u8],
    len: usize,
) -> Option<&'a [u8]> {
    if partial.is_empty() && bytes.len() >= len {
        let (whole, rest) = bytes.split_at(len);
        *bytes = rest;
        return Some(whole);
    }
    let (now, rest) = bytes.split_at((len - partial.len()).min(bytes.len()));
    partial.extend_from_slice(now);
    *bytes = rest;
    (partial.len() == len).then_some(partial.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::link::frame::Channel;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Heard {
        frames: Vec<Frame>,
        payload: Vec<u8>,
    }

    impl FrameSink for Heard {
        type Error = FrameError;
        fn frame(&mut self, frame: Frame) -> Result<(), FrameError> {
            self.frames.push(frame);
            Ok(())
        }
        fn payload(&mut self, bytes: &[u8], _end: bool) -> Result<(), FrameError> {
            self.payload.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn message(bytes: Vec<u8>) -> Frame {
        Frame::Message { channel: Channel::Overlay, bytes }
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_the_stream_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8),
            cuts in prop::collection::vec(1usize..50, 1..40),
        ) {
            let (mut stream, mut frames, mut payload) = (Vec::new(), Vec::new(), Vec::new());
            for (index, body) in bodies.iter().enumerate() {
                let frame = match index % 2 {
                    1 if !body.is_empty() => Frame::Fragment { len: body.len() as u32 },
                    _ => message(body.clone()),
                };
                frame.encode(&mut stream);
                if matches!(frame, Frame::Fragment { .. }) {
                    stream.extend_from_slice(body);
                    payload.extend_from_slice(body);
                }
                frames.push(frame);
            }
            let (mut reader, mut heard) = (FrameReader::new(1000), Heard::default());
            let mut rest = stream.as_slice();
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                reader.feed(now, &mut heard).unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(heard.frames, frames);
            prop_assert_eq!(heard.payload, payload);
        }

        #[test]
        fn no_bytes_panic_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = FrameReader::new(512).feed(&bytes, &mut Heard::default());
        }
    }

    #[test]
    fn a_body_beyond_the_readers_bound_is_refused_before_it_is_buffered() {
        let mut bytes = Vec::new();
        message(vec![0; 513]).encode(&mut bytes);
        let mut reader = FrameReader::new(512);
        assert!(reader.feed(&bytes[..HEAD_LEN], &mut Heard::default()).is_err());
        assert!(reader.partial.is_empty());
    }
}
