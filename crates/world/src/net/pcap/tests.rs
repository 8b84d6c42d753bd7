use super::*;
use crate::net::Network;
use crate::net::tests::{line, packets};
use crate::topology::NodeIx;
use anabranch_proto::transport::Class;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Bytes that a test reads while the network still has their writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fn tcp_packet(header_len: u16, payload_len: u32, segment: Segment) -> transport::Packet {
    let body = Body::Tcp(segment);
    transport::Packet { class: Class::LOWER_EFFORT, header_len, payload_len, xcp: None, body }
}

/// A handshake, data, and an acknowledgement with a SACK block: (forwards, packet).
fn story() -> Vec<(bool, transport::Packet)> {
    let base = Segment { window: 1 << 20, sent: Time(7_000_000), ..Segment::default() };
    let data = Segment { has_ack: true, ..base };
    let block = Range { start: 2_000, end: 3_000 };
    let sack = [block, Range::default(), Range::default()];
    vec![
        (true, tcp_packet(52, 0, Segment { syn: true, ..base })),
        (false, tcp_packet(52, 0, Segment { syn: true, has_ack: true, ..base })),
        (true, tcp_packet(52, 0, data)),
        (true, tcp_packet(52, 1_000, data)),
        (true, tcp_packet(52, 1_000, Segment { seq: 2_000, ..data })),
        (false, tcp_packet(64, 0, Segment { ack: 1_000, sack, sack_len: 1, ..data })),
        (true, tcp_packet(52, 1_000, Segment { seq: 1_000, ..data })),
        (true, tcp_packet(52, 0, Segment { seq: 3_000, fin: true, ..data })),
        (false, tcp_packet(52, 0, Segment { ack: 3_000, fin_acked: true, ..data })),
        (
            true,
            transport::Packet {
                body: Body::Datagram { number: 1, sent: Time::ZERO },
                ..tcp_packet(28, 500, base)
            },
        ),
    ]
}

/// The story over a network of two hosts, captured in both directions.
fn captured() -> Vec<u8> {
    let mut topology = line(2, &packets(10));
    let back =
        crate::topology::Link { from: NodeIx(1), to: NodeIx(0), ..topology.links[0].clone() };
    topology.links.push(back);
    let out = Shared::default();
    let mut network = Network::new(&topology, 1);
    network.observe(Box::new(Capture::new(out.clone(), &[LinkIx(0), LinkIx(1)]).unwrap()));
    for (number, (forwards, body)) in story().into_iter().enumerate() {
        let (from, to) = if forwards { (0, 1) } else { (1, 0) };
        let at = Time(number as u64 * 10_000_000);
        while network.poll(at).is_some() {}
        network.send(at, Packet::of(NodeIx(from), NodeIx(to), 77, body));
    }
    while network.poll(Time::FAR).is_some() {}
    network.finish_observers().unwrap();
    out.0.lock().unwrap().clone()
}

#[test]
fn a_file_has_a_head_and_a_record_per_packet_as_it_departs() {
    let file = captured();
    assert_eq!(file[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
    assert_eq!(file[20..24], 101u32.to_le_bytes());
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut records) = (24, Vec::new());
    while at < file.len() {
        records.push((word(at), word(at + 4), word(at + 8), word(at + 12)));
        at += 16 + word(at + 8) as usize;
    }
    assert_eq!(records.len(), story().len());
    // The fourth: 1,052 bytes sent at 30 ms, on a wire of 1.5 MB/s.
    assert_eq!(records[3], (0, 30_000_000 + 1_052_000_000 / 1_500, 52, 1_052));
    assert_eq!((records[9].2, records[9].3), (28, 528));
}

#[test]
fn the_ip_header_has_a_valid_checksum_and_the_class() {
    let packet = Packet::of(NodeIx(3), NodeIx(400), 5, story().remove(3).1);
    let mut bytes = Vec::new();
    assert_eq!(transport::Packet::head(&packet, &mut bytes), 1_052);
    let sum: u32 =
        bytes[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    assert_eq!((bytes[1], &bytes[12..20]), (4, &[10, 0, 0, 4, 10, 0, 1, 145][..]));
}

#[test]
fn options_that_need_more_than_the_counted_header_lengthen_the_frame() {
    let segment = Segment { has_ack: true, sack_len: 3, ..Segment::default() };
    let packet = Packet::of(NodeIx(0), NodeIx(1), 0, tcp_packet(40, 100, segment));
    let mut bytes = Vec::new();
    let len = transport::Packet::head(&packet, &mut bytes);
    assert_eq!((bytes.len(), len, bytes[32] >> 4), (80, 180, 15));
}

#[test]
fn wireshark_reads_it_with_relative_numbers_and_nothing_malformed() {
    let fields = [
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        "tcp.options.sack_le",
        "tcp.window_size",
        "ip.dsfield.dscp",
        "tcp.flags.str",
        "udp.length",
        "_ws.malformed",
        "tcp.analysis.flags",
    ];
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=;"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut tshark) = command.spawn() else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no tshark");
        return;
    };
    tshark.stdin.take().unwrap().write_all(&captured()).unwrap();
    let output = tshark.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    assert_eq!(rows.len(), story().len(), "{text}");
    // seq, ack, payload, SACK's left edge.
    let row = |number: usize| rows[number][..4].to_vec();
    assert_eq!(row(0), ["0", "0", "0", ""]);
    assert_eq!(row(1), ["0", "1", "0", ""]);
    assert_eq!(row(3), ["1", "1", "1000", ""]);
    assert_eq!(row(5), ["1", "1001", "0", "2001"]);
    assert_eq!(row(8), ["1", "3002", "0", ""]);
    assert_eq!(rows[3][4], (1u32 << 20).to_string(), "{text}");
    assert!(rows.iter().all(|row| row[5] == "1" && row[8].is_empty()), "{text}");
    assert_eq!(rows[9][7], "508", "{text}");
}
