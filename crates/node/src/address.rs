//! Where peers are: socket addresses, as bytes in a [`Contact`].
//!
//! A contact is a list of addresses, each `4: u8, ip: 4 bytes, port: u16` or `6: u8, ip: 16
//! bytes, port: u16` (big endian), best first. An unknown leading byte ends the list, so later
//! versions may append other kinds.

use anabranch_proto::id::Contact;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The most addresses a contact holds: all of them are tried when it is dialled.
pub const ADDRESSES_MAX: usize = 8;

/// The contact of a peer at `addresses`, best first; those that do not fit are left out.
pub fn contact(addresses: &[SocketAddr], reachable: bool) -> Contact {
    let mut bytes = Vec::new();
    for address in addresses.iter().take(ADDRESSES_MAX) {
        let before = bytes.len();
        match address.ip() {
            IpAddr::V4(ip) => {
                bytes.push(4);
                bytes.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(6);
                bytes.extend_from_slice(&ip.octets());
            }
        }
        bytes.extend_from_slice(&address.port().to_be_bytes());
        if bytes.len() > Contact::LEN_MAX {
            bytes.truncate(before);
            break;
        }
    }
    Contact { addresses: bytes, reachable }
}

/// The addresses of a contact; what cannot be read ends the list.
pub fn addresses(contact: &Contact) -> Vec<SocketAddr> {
    let mut rest = contact.addresses.as_slice();
    let mut found = Vec::new();
    while found.len() < ADDRESSES_MAX
        && let Some((address, after)) = first(rest)
    {
        found.push(address);
        rest = after;
    }
    found
}

fn first(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (ip, rest) = match kind {
        4 => {
            let (ip, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::from(*ip)), rest)
        }
        6 => {
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*ip)), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_contact_gives_back_its_addresses_in_order() {
        let list: Vec<SocketAddr> =
            vec!["10.0.0.1:5".parse().unwrap(), "[2001:db8::7]:65535".parse().unwrap()];
        let contact = contact(&list, true);
        assert!(contact.is_valid() && contact.reachable);
        assert_eq!(addresses(&contact), list);
    }

    #[test]
    fn a_contact_with_too_many_addresses_keeps_its_bound() {
        let list: Vec<SocketAddr> =
            (1..20u16).map(|port| SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port)).collect();
        let contact = contact(&list, true);
        assert!(contact.is_valid());
        assert_eq!(addresses(&contact), list[..ADDRESSES_MAX]);
    }

    #[test]
    fn an_unknown_kind_of_address_ends_the_list_and_keeps_what_came_before() {
        let mut contact = contact(&["1.2.3.4:5".parse().unwrap()], true);
        contact.addresses.extend_from_slice(&[9, 9, 9, 9]);
        assert_eq!(addresses(&contact), vec!["1.2.3.4:5".parse().unwrap()]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let found = addresses(&Contact { addresses: bytes, reachable: true });
            prop_assert!(found.len() <= ADDRESSES_MAX);
        }
    }
}
