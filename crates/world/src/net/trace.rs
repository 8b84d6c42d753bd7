//! A trace of what happens at links, one JSON object per line in the order of time, as qlog's
//! sequences are (draft-ietf-quic-qlog-main-schema, JSON-SEQ without the separators):
//!
//! ```text
//! {"time":0.001226667,"name":"link:sent","data":{"link":"a->b","flow":3,"from":"a","to":"b",
//! "len":1052,"dscp":0,"seq":0,"payload":1000,"ack":0}}
//! ```
//!
//! (on one line). `time` is in seconds, lengths are in bytes. `name` is `link:queued`,
//! `link:dropped` (with `cause`), `link:sent`, `link:arrived` or, at a packet's destination,
//! `link:delivered`; `link:changed` has the link and `to`. The first line says what the file is.

use super::observe::{Observer, Step};
use super::packet::Packet;
use crate::topology::{Changed, LinkIx, Topology};
use anabranch_proto::time::Time;
use anabranch_proto::transport::{self, Body, plt};
use std::fmt::Write as _;
use std::io::{Result, Write};

/// A body that a trace says something of.
pub trait Told {
    /// Appends further members, each with a comma in front.
    fn tell(&self, _line: &mut String) {}
}

impl Told for () {}
impl Told for Vec<u8> {}

impl Told for transport::Packet {
    fn tell(&self, line: &mut String) {
        let _ = match &self.body {
            Body::Tcp(segment) => {
                for (is_set, flag) in
                    [(segment.syn, "syn"), (segment.fin, "fin"), (segment.rst, "rst")]
                {
                    if is_set {
                        let _ = write!(line, ",\"{flag}\":true");
                    }
                }
                if segment.has_ack {
                    let _ = write!(line, ",\"ack\":{}", segment.ack);
                }
                write!(line, ",\"seq\":{},\"payload\":{}", segment.seq, self.payload_len)
            }
            Body::Plt(plt::Header::High(high)) => {
                let (seq, ack, actual) = (high.segment.seq, high.segment.ack, high.actual);
                let sub = "\"sub\":\"hcm\"";
                let _ = write!(line, ",{sub},\"seq\":{seq},\"ack\":{ack}");
                write!(line, ",\"actual\":{actual},\"payload\":{}", self.payload_len)
            }
            Body::Plt(plt::Header::Low(low)) => {
                let (seq, actual, sub) = (low.seq, low.actual, "\"sub\":\"lcm\"");
                let _ = write!(line, ",{sub},\"seq\":{seq},\"lseq\":{}", low.unknown);
                write!(line, ",\"actual\":{actual},\"payload\":{}", self.payload_len)
            }
            Body::Plt(plt::Header::Report(report)) => {
                let (from, to, ack) = (report.from, report.to, report.credit.ack);
                write!(line, ",\"sub\":\"lcm\",\"from\":{from},\"to\":{to},\"ack\":{ack}")
            }
            Body::Datagram { number, .. } => {
                write!(line, ",\"number\":{number},\"payload\":{}", self.payload_len)
            }
        };
        if let Some(xcp) = &self.xcp {
            // Debug writes every finite number so that JSON can read it.
            let _ = write!(line, ",\"feedback\":{:?}", xcp.feedback);
        }
    }
}

/// Writes the trace of chosen links.
pub struct Trace<W> {
    out: W,
    /// Names in quotes, of all nodes; of the links that are wanted, the others empty.
    nodes: Vec<String>,
    links: Vec<String>,
    line: String,
    outcome: Result<()>,
}

impl<W: Write> Trace<W> {
    /// A trace of `links` of `topology` to `out`; buffer it.
    pub fn new(mut out: W, topology: &Topology, links: &[LinkIx]) -> Result<Trace<W>> {
        let nodes: Vec<String> = topology.nodes.iter().map(|node| quoted(&node.name)).collect();
        let names = super::names::Names::new(topology);
        let mut wanted = vec![String::new(); topology.links.len()];
        for link in links {
            wanted[link.0 as usize] = quoted(&names.of(*link));
        }
        writeln!(out, "{{\"v\":1,\"event\":\"trace\",\"links\":{}}}", links.len())?;
        Ok(Trace { out, nodes, links: wanted, line: String::new(), outcome: Ok(()) })
    }

    /// Begins a line.
    fn begin(&mut self, at: Time, name: &str, link: LinkIx) {
        self.line.clear();
        let (secs, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        let link = &self.links[link.0 as usize];
        let _ = write!(
            self.line,
            "{{\"time\":{secs}.{nanos:09},\"name\":\"link:{name}\",\"data\":{{\"link\":{link}"
        );
    }

    fn end(&mut self) {
        self.line.push_str("}}\n");
        if self.outcome.is_ok() {
            self.outcome = self.out.write_all(self.line.as_bytes());
        }
    }
}

impl<W> std::fmt::Debug for Trace<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

impl<B: Told, W: Write + Send> Observer<B> for Trace<W> {
    fn wants(&self, link: LinkIx) -> bool {
        self.links.get(link.0 as usize).is_some_and(|name| !name.is_empty())
    }

    fn see(&mut self, at: Time, link: LinkIx, step: Step, packet: &Packet<B>) {
        let (name, cause) = match step {
            Step::Queued => ("queued", None),
            Step::Dropped(cause) => ("dropped", Some(cause)),
            Step::Sent => ("sent", None),
            Step::Arrived { is_last: false } => ("arrived", None),
            Step::Arrived { is_last: true } => ("delivered", None),
        };
        self.begin(at, name, link);
        if let Some(cause) = cause {
            let _ = write!(self.line, ",\"cause\":\"{}\"", cause.name());
        }
        let (from, to) = (&self.nodes[packet.from.0 as usize], &self.nodes[packet.to.0 as usize]);
        let Packet { flow, len, dscp, .. } = packet;
        let _ = write!(
            self.line,
            ",\"flow\":{flow},\"from\":{from},\"to\":{to},\"len\":{len},\"dscp\":{dscp}"
        );
        packet.body.tell(&mut self.line);
        self.end();
    }

    fn changed(&mut self, at: Time, link: LinkIx, to: Changed) {
        self.begin(at, "changed", link);
        let _ = match to {
            Changed::Rate(rate) => {
                write!(self.line, ",\"to\":\"rate\",\"bytes_per_s\":{}", rate.bytes())
            }
            Changed::Delay(delay) => {
                write!(self.line, ",\"to\":\"delay\",\"ns\":{}", delay.as_nanos())
            }
            Changed::Loss(loss) => {
                write!(self.line, ",\"to\":\"loss\",\"some\":{}", loss.is_some())
            }
            Changed::Down => write!(self.line, ",\"to\":\"down\""),
            Changed::Up => write!(self.line, ",\"to\":\"up\""),
        };
        self.end();
    }

    fn finish(&mut self) -> Result<()> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        self.out.flush()
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::{line, packet, packets};
    use crate::net::{Network, Observer};
    use std::sync::{Arc, Mutex};

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

    #[test]
    fn a_trace_has_a_line_per_step_in_the_order_of_time() {
        let topology = line(3, &packets(1));
        let out = Shared::default();
        let mut network = Network::new(&topology, 1);
        let links = [LinkIx(0), LinkIx(1)];
        network.observe(Box::new(Trace::new(out.clone(), &topology, &links).unwrap()));
        network.send(Time::ZERO, packet(&topology, 3, 1_500));
        network.send(Time::ZERO, packet(&topology, 4, 1_500));
        while network.poll(Time::FAR).is_some() {}
        network.change(Time(20_000_000), LinkIx(1), Changed::Down);
        network.finish_observers().unwrap();
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let packet = |flow| {
            format!("\"flow\":{flow},\"from\":\"n0\",\"to\":\"n2\",\"len\":1500,\"dscp\":0}}}}")
        };
        let row = |time: &str, name: &str, link: &str, rest: String| {
            format!(
                "{{\"time\":{time},\"name\":\"link:{name}\",\"data\":{{\"link\":\"{link}\",{rest}"
            )
        };
        let expected = [
            "{\"v\":1,\"event\":\"trace\",\"links\":2}".to_owned(),
            row("0.000000000", "queued", "n0->n1", packet(3)),
            row("0.000000000", "dropped", "n0->n1", format!("\"cause\":\"full\",{}", packet(4))),
            row("0.001000000", "sent", "n0->n1", packet(3)),
            row("0.006000000", "arrived", "n0->n1", packet(3)),
            row("0.006000000", "queued", "n1->n2", packet(3)),
            row("0.007000000", "sent", "n1->n2", packet(3)),
            row("0.012000000", "delivered", "n1->n2", packet(3)),
            row("0.020000000", "changed", "n1->n2", "\"to\":\"down\"}}".to_owned()),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_writer_that_fails_is_told_at_the_end() {
        #[derive(Debug)]
        struct Broken(u32);
        impl Write for Broken {
            fn write(&mut self, bytes: &[u8]) -> Result<usize> {
                self.0 += 1;
                if self.0 > 8 {
                    Err(std::io::ErrorKind::StorageFull.into())
                } else {
                    Ok(bytes.len())
                }
            }
            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }
        let topology = line(2, &packets(20));
        let mut trace = Trace::new(Broken(0), &topology, &[LinkIx(0)]).unwrap();
        for _ in 0..20 {
            trace.see(Time::ZERO, LinkIx(0), Step::Sent, &packet(&topology, 0, 100));
        }
        let end = Observer::<()>::finish(&mut trace);
        assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }

    #[test]
    fn names_are_quoted_for_json() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }
}
