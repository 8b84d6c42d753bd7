//! Joining a group: reach somebody that the ticket names, and learn the group's parameters.

use super::links::Links;
use super::messages::Message;
use super::{Inbound, Shared};
use crate::clock;
use crate::content::GroupInfo;
use crate::dial::{self, DialError};
use crate::error::FetchError;
use crate::link::LinkEvent;
use anabranch_proto::id::{LinkId, PeerInfo};
use anabranch_proto::link::frame::Channel;
use anabranch_proto::time::Time;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long somebody is looked for.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(10);
/// How long a refusal is doubted: a source that restarts refuses until it has found its keys.
const REFUSED_AFTER: Duration = Duration::from_secs(2);
/// Waits between two dials of one contact.
const BACK_OFF: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(1500)];

/// Reaches members and gives the group's verified parameters; the links made stay in `links`.
pub(crate) async fn join(
    shared: &Arc<Shared>,
    inbox: &mut mpsc::Receiver<Inbound>,
    links: &mut Links,
) -> Result<GroupInfo, FetchError> {
    let mut joining =
        Joining { shared: shared.clone(), links, refused: 0, last: None, wrong: None };
    let mut dials = JoinSet::new();
    for contact in shared.base.contacts.iter().filter(|peer| peer.contact.reachable) {
        dials.spawn(dial_until_reached(shared.clone(), contact.clone()));
    }
    let started = clock::now();
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            inbound = inbox.recv() => match inbound {
                Some(inbound) => if let Some(info) = joining.on_inbound(inbound) {
                    return Ok(info);
                },
                None => return Err(joining.failure()),
            },
            _ = tick.tick() => if joining.is_hopeless(started) {
                return Err(joining.failure());
            },
        }
    }
}

/// Dials one contact, again and again.
async fn dial_until_reached(shared: Arc<Shared>, peer: PeerInfo) {
    let mut waits = BACK_OFF.iter().chain(std::iter::repeat(&BACK_OFF[BACK_OFF.len() - 1]));
    loop {
        let inbound = match dial::dial(shared.clone(), peer.clone()).await {
            Ok(connection) => Inbound::Ready(Box::new(connection)),
            Err(error) => Inbound::DialFailed { peer: peer.id, error },
        };
        let reached = matches!(inbound, Inbound::Ready(_));
        if shared.inbox.send(inbound).await.is_err() || reached {
            return;
        }
        if let Some(wait) = waits.next() {
            tokio::time::sleep(*wait).await;
        }
    }
}

struct Joining<'a> {
    shared: Arc<Shared>,
    links: &'a mut Links,
    refused: u32,
    /// Why the last dial failed.
    last: Option<String>,
    /// Why the parameters that came were not taken.
    wrong: Option<String>,
}

impl Joining<'_> {
    fn on_inbound(&mut self, inbound: Inbound) -> Option<GroupInfo> {
        match inbound {
            Inbound::Ready(connection) => {
                let link = self.links.add(*connection)?;
                let wanted = Message::InfoWanted.encode();
                self.links.send(link, Channel::Content, wanted);
            }
            Inbound::DialFailed { error: DialError::Refused, .. } => self.refused += 1,
            Inbound::DialFailed { error: DialError::Unreachable(why), .. } => {
                self.last = Some(why);
            }
            Inbound::Link(link, LinkEvent::Content(bytes)) => {
                if let Some(Message::Info(signed)) = Message::decode(&bytes) {
                    return self.on_info(link, signed);
                }
            }
            Inbound::Link(link, LinkEvent::Down(_)) => {
                self.links.remove(link);
            }
            Inbound::Link(link, event) => self.links.keep_back(link, event),
            Inbound::Flushed(_) | Inbound::Finished(_) | Inbound::Leave => {}
        }
        None
    }

    fn on_info(&mut self, link: LinkId, signed: Vec<u8>) -> Option<GroupInfo> {
        match GroupInfo::open(&signed, &self.shared.base.source, &self.shared.base.root) {
            Ok(info) => {
                // The first is kept to be passed on; all that verify are the same.
                self.shared.signed.get_or_init(|| signed);
                Some(info)
            }
            Err(error) => {
                self.wrong = Some(error.to_string());
                self.links.fail(link);
                None
            }
        }
    }

    /// Whether waiting longer makes no sense.
    fn is_hopeless(&self, started: Time) -> bool {
        let waited = clock::now().since(started);
        let linked = !self.links.is_empty();
        waited >= UNREACHABLE_AFTER || !linked && self.refused > 0 && waited >= REFUSED_AFTER
    }

    fn failure(&mut self) -> FetchError {
        if let Some(reason) = self.wrong.take() {
            return FetchError::Integrity { reason };
        }
        if self.refused > 0 {
            return FetchError::Refused;
        }
        let tried = self.last.take().unwrap_or_else(|| "it names no address".to_string());
        FetchError::Unreachable { tried }
    }
}
