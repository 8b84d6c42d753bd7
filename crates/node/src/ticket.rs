//! Tickets: one printable string that lets its holder join a group.
//!
//! `anabranch1:` and then base32 (lower-case a-z and 2-7, no padding) of
//! `length: u16, body, checksum: 4 bytes`, where the body is the [`Ticket`] in postcard and the
//! checksum the first bytes of BLAKE3 over everything before it, the prefix included. The number
//! in the prefix is the version. A ticket holds the join secret, so its `Debug` shows no more
//! than the content and it is never logged.

mod base32;

use anabranch_proto::id::{Contact, PeerId, PeerInfo};
use anabranch_proto::link::handshake::JoinSecret;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most contacts a ticket names.
pub const CONTACTS_MAX: usize = 8;
/// The longest ticket in characters, after its prefix.
const CHARACTERS_MAX: usize = 4096;

const NAME: &str = "anabranch";
const VERSION: u32 = 1;
const CHECKSUM_LEN: usize = 4;

/// What a receiver needs to join a group.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The content: the BLAKE3 hash of the file, or of the directory's manifest.
    pub root: [u8; 32],
    /// The key of the source, which signs the group's parameters.
    pub source: PeerId,
    /// What members prove to each other.
    pub secret: JoinSecret,
    /// Members to join through, most promising first; at most [`CONTACTS_MAX`].
    pub contacts: Vec<PeerInfo>,
}

/// The body on the wire; a contact's id is left out when it is the source's.
#[derive(Serialize, Deserialize)]
struct Body {
    root: [u8; 32],
    source: [u8; 32],
    secret: [u8; 16],
    contacts: Vec<(Option<[u8; 32]>, bool, Vec<u8>)>,
}

/// Why a string is not a ticket of use here.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TicketError {
    /// Something else altogether.
    #[error("this is not a ticket: a ticket begins with \"anabranch1:\"")]
    NotATicket,
    /// Made by a later version.
    #[error("this ticket was made by a later version of anabranch (format {0}); update anabranch")]
    LaterVersion(u32),
    /// A character that no ticket has.
    #[error("the ticket contains {0:?}, which no ticket has; copy it again")]
    Character(char),
    /// The end is missing.
    #[error("the ticket is cut off: its end is missing; copy it again, whole")]
    Truncated,
    /// There is more than a ticket.
    #[error("the ticket has extra characters at its end; copy it again, without them")]
    Extra,
    /// The checksum does not fit.
    #[error("the ticket is mistyped: its checksum does not fit; copy it again")]
    Mistyped,
    /// Well copied, but its parts make no sense.
    #[error("the ticket is malformed; ask for a new one")]
    Malformed,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contacts = self.contacts.iter().take(CONTACTS_MAX).map(|peer| {
            let id = (peer.id != self.source).then_some(peer.id.0);
            (id, peer.contact.reachable, peer.contact.addresses.clone())
        });
        let body = Body {
            root: self.root,
            source: self.source.0,
            secret: self.secret.0,
            contacts: contacts.collect(),
        };
        let body = postcard::to_stdvec(&body).map_err(|_| fmt::Error)?;
        let len = u16::try_from(body.len()).map_err(|_| fmt::Error)?;
        let mut bytes = len.to_be_bytes().to_vec();
        bytes.extend_from_slice(&body);
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum);
        write!(f, "{NAME}{VERSION}:{}", base32::encode(&bytes))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({}…)", &blake3::Hash::from_bytes(self.root).to_hex()[..16])
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Reads a ticket; white space around it and capital letters do no harm.
    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let text = text.trim().to_ascii_lowercase();
        let (prefix, text) = text.split_once(':').ok_or(TicketError::NotATicket)?;
        let version = prefix.strip_prefix(NAME).and_then(|number| number.parse::<u32>().ok());
        match version {
            Some(VERSION) => {}
            Some(later) if later > VERSION => return Err(TicketError::LaterVersion(later)),
            _ => return Err(TicketError::NotATicket),
        }
        if text.len() > CHARACTERS_MAX {
            return Err(TicketError::Extra);
        }
        let bytes = base32::decode(text).map_err(TicketError::Character)?;
        Ticket::from_body(checked_body(&bytes)?)
    }
}

impl Ticket {
    fn from_body(body: &[u8]) -> Result<Ticket, TicketError> {
        let (body, rest) =
            postcard::take_from_bytes::<Body>(body).map_err(|_| TicketError::Malformed)?;
        if !rest.is_empty() || body.contacts.len() > CONTACTS_MAX {
            return Err(TicketError::Malformed);
        }
        let mut contacts = Vec::new();
        for (id, reachable, addresses) in body.contacts {
            let contact = Contact { addresses, reachable };
            if !contact.is_valid() {
                return Err(TicketError::Malformed);
            }
            contacts.push(PeerInfo { id: PeerId(id.unwrap_or(body.source)), contact });
        }
        Ok(Ticket {
            root: body.root,
            source: PeerId(body.source),
            secret: JoinSecret(body.secret),
            contacts,
        })
    }
}

/// Splits off length and checksum, and tells a cut ticket from a mistyped one.
fn checked_body(bytes: &[u8]) -> Result<&[u8], TicketError> {
    let (len, rest) = bytes.split_first_chunk::<2>().ok_or(TicketError::Truncated)?;
    let len = usize::from(u16::from_be_bytes(*len));
    if rest.len() < len + CHECKSUM_LEN {
        return Err(TicketError::Truncated);
    }
    let (body, found) = rest.split_at(len);
    if found[..CHECKSUM_LEN] != checksum(&bytes[..2 + len]) {
        return Err(TicketError::Mistyped);
    }
    if found.len() > CHECKSUM_LEN {
        return Err(TicketError::Extra);
    }
    Ok(body)
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{NAME}{VERSION}:").as_bytes()).update(bytes);
    let mut checksum = [0; CHECKSUM_LEN];
    checksum.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM_LEN]);
    checksum
}

#[cfg(test)]
mod tests;
