//! Messages of the driver's own channel: a group's parameters and its hash pages.
//!
//! Encoded with postcard; a message of a kind that this version does not know is skipped.

use crate::content::PageId;
use serde::{Deserialize, Serialize};

/// A message between two drivers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Asks for the group's signed parameters.
    InfoWanted,
    /// The group's signed parameters: [`crate::content::GroupInfo::open`] reads them.
    Info(Vec<u8>),
    /// Asks for a hash page.
    PageWanted(PageId),
    /// A hash page, or that it is not here.
    Page(PageId, Option<Vec<u8>>),
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Message> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> [(Message, &'static [u8]); 4] {
        let id = PageId { tree: 1, page: 300 };
        [
            (Message::InfoWanted, &[0]),
            (Message::Info(vec![7, 8]), &[1, 2, 7, 8]),
            (Message::PageWanted(id), &[2, 1, 0xac, 2]),
            (Message::Page(id, Some(vec![9])), &[3, 1, 0xac, 2, 1, 1, 9]),
        ]
    }

    #[test]
    fn the_bytes_of_every_message_are_what_they_were_in_version_1() {
        for (message, bytes) in messages() {
            assert_eq!(message.encode(), bytes);
            assert_eq!(Message::decode(bytes), Some(message));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::decode(&bytes);
        }
    }
}
