//! The join proof on a secured connection: one hello each way, the dialler's first.
//!
//! A listener reads one small record, and says nothing unless the hello in it proves the secret of
//! a group it serves.

use super::transmit::FRAGMENT_LEN;
use super::{FrameReader, FrameSink};
use crate::tls::handshake::{Secured, read_record};
use crate::tls::record::{HEAD_LEN, RecordError, TAIL_LEN};
use anabranch_proto::id::Contact;
use anabranch_proto::link::LinkConfig;
use anabranch_proto::link::frame::{Channel, Frame, FrameError};
use anabranch_proto::link::handshake::{
    GroupTag, HELLO_LEN_MAX, Hello, HelloError, JoinSecret, Side,
};
use std::io;
use thiserror::Error;
use tokio::io::AsyncWriteExt;

/// Why a hello was not exchanged.
#[derive(Debug, Error)]
pub(crate) enum JoinError {
    /// The network failed, or the far end closed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What came is no record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What came is no hello, or not the right one.
    #[error(transparent)]
    Hello(#[from] HelloError),
}

/// What the two ends of a link prove to each other.
#[derive(Clone)]
pub(crate) struct Membership {
    pub(crate) tag: GroupTag,
    pub(crate) secret: JoinSecret,
}

/// The parameters of every session on sockets.
pub(crate) fn link_config() -> LinkConfig {
    LinkConfig { fragment_len: FRAGMENT_LEN, ..LinkConfig::default() }
}

/// The dialler's part: proves first, believes after. Gives the far end's contact.
pub(crate) async fn offer(
    secured: &mut Secured,
    group: &Membership,
    contact: Contact,
) -> Result<Contact, JoinError> {
    say(secured, Side::Dialler, group, contact).await?;
    let hello = hear(secured).await?;
    hello.check(Side::Listener, &group.tag, &group.secret, &secured.exporter)?;
    Ok(hello.contact)
}

/// The listener's part: `group` finds the group with a tag; what it returns is given back with
/// the far end's contact, after this end has proved itself too.
pub(crate) async fn accept<G>(
    secured: &mut Secured,
    group: impl FnOnce(&GroupTag) -> Option<(G, Membership, Contact)>,
) -> Result<(G, Contact), JoinError> {
    let hello = hear(secured).await?;
    let (found, group, contact) = group(&hello.group).ok_or(HelloError::Group)?;
    hello.check(Side::Dialler, &group.tag, &group.secret, &secured.exporter)?;
    say(secured, Side::Listener, &group, contact).await?;
    Ok((found, hello.contact))
}

/// Says the hello of `side`.
pub(crate) async fn say(
    secured: &mut Secured,
    side: Side,
    group: &Membership,
    contact: Contact,
) -> Result<(), JoinError> {
    let hello = Hello::new(side, group.tag, &group.secret, &secured.exporter, contact);
    let mut record = vec![0; HEAD_LEN];
    Frame::Message { channel: Channel::Content, bytes: hello.encode() }.encode(&mut record);
    record.resize(record.len() + TAIL_LEN, 0);
    secured.seal.seal(&mut record)?;
    secured.stream.write_all(&record).await?;
    Ok(())
}

async fn hear(secured: &mut Secured) -> Result<Hello, JoinError> {
    let mut record = Vec::new();
    read_record(&mut secured.stream, &mut record).await?;
    let plain = secured.open.open(&mut record)?;
    let mut first = FirstFrame(None);
    FrameReader::new(HELLO_LEN_MAX).feed(plain, &mut first).map_err(|_| HelloError::Malformed)?;
    match first.0 {
        Some(Frame::Message { channel: Channel::Content, bytes }) => Ok(Hello::decode(&bytes)?),
        _ => Err(JoinError::Hello(HelloError::Malformed)),
    }
}

/// Takes exactly one frame.
struct FirstFrame(Option<Frame>);

impl FrameSink for FirstFrame {
    type Error = FrameError;
    fn frame(&mut self, frame: Frame) -> Result<(), FrameError> {
        match self.0.replace(frame) {
            None => Ok(()),
            Some(_) => Err(FrameError::Malformed { kind: 0 }),
        }
    }
    fn payload(&mut self, _bytes: &[u8], _end: bool) -> Result<(), FrameError> {
        Err(FrameError::Malformed { kind: 0 })
    }
}
