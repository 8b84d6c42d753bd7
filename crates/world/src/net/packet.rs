//! What travels: a packet with its body, the store that keeps packets while they are under way,
//! and the few words of each that links move around.

use crate::prefetch::prefetch;
use crate::topology::NodeIx;
use anabranch_proto::transport::{self, XcpHeader};

/// A packet in the network.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet<B> {
    /// The host that sends it.
    pub from: NodeIx,
    /// The host it is for.
    pub to: NodeIx,
    /// Which flow it belongs to; only its users and traces read it.
    pub flow: u32,
    /// Bytes on the wire, headers included.
    pub len: u32,
    /// DSCP, from which a link's queue finds its class.
    pub dscp: u8,
    /// What is in it: a transport packet in the simulator, bytes in the emulator.
    pub body: B,
}

impl Packet<transport::Packet> {
    /// A transport packet as the network carries it: its own length and class.
    pub fn of(from: NodeIx, to: NodeIx, flow: u32, body: transport::Packet) -> Self {
        Packet { from, to, flow, len: body.len(), dscp: body.class.0, body }
    }
}

/// What the network has to know of a body.
pub trait Carried {
    /// XCP's congestion header, which XCP routers read and lower.
    fn xcp(&mut self) -> Option<&mut XcpHeader> {
        None
    }
}

/// On a packet without payload the header is what the receiver returns, which is not for routers.
impl Carried for transport::Packet {
    fn xcp(&mut self) -> Option<&mut XcpHeader> {
        self.xcp.as_mut().filter(|_| self.payload_len > 0)
    }
}

impl Carried for () {}
impl Carried for Vec<u8> {}
impl Carried for Box<[u8]> {}

/// What links move of a packet; the rest stays in the [`Store`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    /// Counts the packets sent into the network, and orders events of one time.
    pub(crate) serial: u64,
    /// Where it is stored.
    pub(crate) slot: u32,
    /// The place of the current link in the routes' arena.
    pub(crate) hop: u32,
    /// Bytes on the wire.
    pub(crate) len: u32,
    /// Its class at the current link.
    pub(crate) class: u8,
}

/// Packets under way, in slots that are used again.
#[derive(Debug)]
pub(crate) struct Store<B> {
    slots: Vec<Option<Packet<B>>>,
    free: Vec<u32>,
}

impl<B> Store<B> {
    pub(crate) fn new() -> Store<B> {
        Store { slots: Vec::new(), free: Vec::new() }
    }

    /// How many packets are under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, packet: Packet<B>) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(packet);
                slot
            }
            None => {
                self.slots.push(Some(packet));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Takes a packet out; `None` only for a slot that is free, which no unit names.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Packet<B>> {
        let packet = self.slots[slot as usize].take();
        if packet.is_some() {
            self.free.push(slot);
        }
        packet
    }

    /// Asks for a packet's memory ahead of time.
    pub(crate) fn look_at(&self, slot: u32) {
        self.slots.get(slot as usize).into_iter().for_each(prefetch);
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Packet<B>> {
        self.slots[slot as usize].as_ref()
    }
}

impl<B: Carried> Store<B> {
    /// The XCP header of a packet, where it has one.
    pub(crate) fn xcp(&mut self, slot: u32) -> Option<&mut XcpHeader> {
        self.slots[slot as usize].as_mut()?.body.xcp()
    }

    pub(crate) fn dscp(&self, slot: u32) -> u8 {
        self.slots[slot as usize].as_ref().map_or(0, |packet| packet.dscp)
    }
}
