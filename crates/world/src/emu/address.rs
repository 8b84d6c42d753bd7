//! Which host has which address, and what an IP packet's header says about where it goes.
//!
//! Host number `n`, counted from 0 in the order of the topology, has `10.x.y.z` with
//! `x·254² + y·254 + z − 1 = n` (so `10.0.0.1` to `10.0.0.254`, then `10.0.1.1`), and
//! `fd0a::x:y:z` with the same three numbers.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The prefix length of the network in which all hosts are.
pub(super) const PREFIX_V4: u8 = 8;
/// The same for IPv6.
pub(super) const PREFIX_V6: u8 = 64;

/// Last bytes run from 1 to 254, so that no address looks like a network or a broadcast.
const PER_BYTE: u32 = 254;

/// The IPv4 address of a host.
pub(super) fn v4(host: u32) -> Ipv4Addr {
    let [x, y, z] = parts(host);
    Ipv4Addr::new(10, x, y, z)
}

/// The IPv6 address of a host.
pub(super) fn v6(host: u32) -> Ipv6Addr {
    let [x, y, z] = parts(host).map(u16::from);
    Ipv6Addr::new(0xfd0a, 0, 0, 0, 0, x, y, z)
}

fn parts(host: u32) -> [u8; 3] {
    let (upper, z) = (host / PER_BYTE, host % PER_BYTE + 1);
    [(upper / PER_BYTE) as u8, (upper % PER_BYTE) as u8, z as u8]
}

fn host(x: u8, y: u8, z: u8) -> Option<u32> {
    let (x, y, z) = (u32::from(x), u32::from(y), u32::from(z));
    (y < PER_BYTE && (1..=PER_BYTE).contains(&z)).then(|| (x * PER_BYTE + y) * PER_BYTE + z - 1)
}

/// What the emulator wants to know of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// The number of the host it goes to; it may be that of no host.
    pub(super) to: u32,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub(super) dscp: u8,
}

/// Reads the header of an IP packet. `None` when it is none, or goes to no address of the scheme
/// (as multicast, which is not carried).
pub(super) fn header(packet: &[u8]) -> Option<Header> {
    match packet.first()? >> 4 {
        4 => {
            let packet: &[u8; 20] = packet.first_chunk()?;
            let [10, x, y, z] = packet[16..20] else { return None };
            Some(Header { to: host(x, y, z)?, dscp: packet[1] >> 2 })
        }
        6 => {
            let packet: &[u8; 40] = packet.first_chunk()?;
            let [x, y, z] = v6_parts(&packet[24..40])?;
            let class = packet[0] << 4 | packet[1] >> 4;
            Some(Header { to: host(x, y, z)?, dscp: class >> 2 })
        }
        _ => None,
    }
}

fn v6_parts(address: &[u8]) -> Option<[u8; 3]> {
    match *address {
        [0xfd, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, x, 0, y, 0, z] => Some([x, y, z]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_v4(to: Ipv4Addr, tos: u8) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[1]) = (0x45, tos);
        packet[16..].copy_from_slice(&to.octets());
        packet
    }

    fn packet_v6(to: Ipv6Addr, class: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[1]) = (0x60 | class >> 4, class << 4);
        packet[24..].copy_from_slice(&to.octets());
        packet
    }

    #[test]
    fn the_address_of_every_host_leads_back_to_it_in_both_families() {
        for number in (0..1000).chain([64_515, 64_516, 100_000]) {
            let expected = Some(Header { to: number, dscp: 46 });
            assert_eq!(header(&packet_v4(v4(number), 46 << 2)), expected, "{number}");
            assert_eq!(header(&packet_v6(v6(number), 46 << 2 | 1)), expected, "{number}");
        }
        assert_eq!(v4(0), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(v4(254), Ipv4Addr::new(10, 0, 1, 1));
    }

    #[test]
    fn what_is_no_packet_to_a_host_is_not_taken_for_one() {
        assert_eq!(header(&[]), None);
        assert_eq!(header(&[0x45; 19]), None, "cut off");
        assert_eq!(header(&packet_v4(Ipv4Addr::new(224, 0, 0, 1), 0)), None);
        assert_eq!(header(&packet_v4(Ipv4Addr::new(10, 255, 255, 255), 0)), None);
        assert_eq!(header(&packet_v6("ff02::2".parse().unwrap(), 0)), None);
        assert_eq!(header(&[0; 60]), None, "neither version");
    }
}
