//! The sender's view of the actual stream: what was written, who is responsible for which bytes,
//! and how far the receive window lets it go (thesis §3.2.1).
//!
//! Every byte from the first that is not acknowledged on is in exactly one place: not sent; with
//! the HCM, which is reliable; with the LCM; or in the retransmit buffer, because the LCM lost it.

use super::header::Credit;
use super::map::SequenceMap;
use crate::transport::packet::Range;
use crate::transport::ranges::Ranges;

/// See [the module](self).
#[derive(Debug)]
pub struct Stream {
    mss: u64,
    /// The length so far.
    limit: u64,
    is_finished: bool,
    /// Behind the last byte that was sent for the first time.
    nxt: u64,
    /// The receiver has all before it.
    una: u64,
    /// The receiver lets bytes go up to here.
    edge: u64,
    /// The LCM retransmit buffer.
    lost: Ranges,
    /// The HCM's virtual stream.
    map: SequenceMap,
}

impl Stream {
    /// An empty stream of packets of `mss` bytes, of which `window` bytes may be on their way.
    pub fn new(mss: u32, window: u64) -> Stream {
        Stream {
            mss: u64::from(mss.max(1)),
            limit: 0,
            is_finished: false,
            nxt: 0,
            una: 0,
            edge: window,
            lost: Ranges::default(),
            map: SequenceMap::default(),
        }
    }

    /// The application appends `bytes`.
    pub fn write(&mut self, bytes: u64) {
        if !self.is_finished {
            self.limit = self.limit.saturating_add(bytes);
        }
    }

    /// The stream ends here.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// The length, when the application has finished.
    pub fn end(&self) -> Option<u64> {
        self.is_finished.then_some(self.limit)
    }

    /// Whether all there will be is acknowledged.
    pub fn is_delivered(&self) -> bool {
        self.end() == Some(self.una)
    }

    /// Bytes written and never sent.
    pub fn unsent(&self) -> u64 {
        self.limit - self.nxt
    }

    /// Behind the last byte that was sent.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The first byte that is not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The outstanding window: bytes from the first that is not acknowledged that may be sent.
    pub fn window(&self) -> u64 {
        self.edge - self.una
    }

    /// The LCM retransmit buffer.
    pub fn lost(&mut self) -> &mut Ranges {
        &mut self.lost
    }

    /// The ranges in the LCM retransmit buffer.
    pub fn lost_ranges(&self) -> impl Iterator<Item = Range> {
        self.lost.iter().copied()
    }

    /// Bytes in the LCM retransmit buffer.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.bytes()
    }

    /// The HCM's virtual stream.
    pub fn map(&self) -> &SequenceMap {
        &self.map
    }

    /// The HCM's virtual bytes before `una` are acknowledged.
    pub fn advance_map(&mut self, una: u64) {
        self.map.advance(una);
    }

    /// What the receiver says of the actual stream. Gives whether more of it has arrived. An
    /// acknowledgement of what was never sent is ignored.
    pub fn on_credit(&mut self, credit: &Credit) -> bool {
        if credit.ack > self.nxt {
            return false;
        }
        self.edge = self.edge.max(credit.ack.saturating_add(credit.window));
        let is_news = credit.ack > self.una;
        self.una = self.una.max(credit.ack);
        self.edge = self.edge.max(self.una);
        self.lost.remove_below(self.una);
        is_news
    }

    /// The next bytes that were never sent, as far as the receive window lets them go: a full
    /// packet, or what is left of the stream or of a window with nothing outstanding.
    fn new_bytes(&self) -> Option<Range> {
        let open = self.edge.saturating_sub(self.nxt);
        let wanted = self.unsent().min(self.mss);
        let len = wanted.min(open);
        let is_silly = len < wanted && self.una < self.nxt;
        (len > 0 && !is_silly).then_some(Range { start: self.nxt, end: self.nxt + len })
    }

    /// Whether the receive window has no place for another packet.
    pub fn is_full(&self) -> bool {
        self.edge < self.nxt + self.mss
    }

    /// Whether bytes wait that only the receive window keeps back.
    pub fn is_held(&self) -> bool {
        self.unsent() > 0 && self.lost.is_empty() && self.new_bytes().is_none()
    }

    /// Bytes of the next packet for the HCM: lost ones first, then new ones if `takes_new`.
    pub fn next_len_for_high(&self, takes_new: bool) -> u64 {
        match self.lost.first() {
            Some(first) => first.len().min(self.mss),
            None if takes_new => self.new_bytes().map_or(0, |new| new.len()),
            None => 0,
        }
    }

    /// Hands the next packet's bytes to the HCM.
    pub fn take_for_high(&mut self) -> Option<Range> {
        let range = self.lost.pop(self.mss).or_else(|| self.take_new())?;
        self.map.push(range);
        Some(range)
    }

    /// Bytes of the next packet for the LCM: new ones, unless it `resends`.
    pub fn next_len_for_low(&self, resends: bool) -> u64 {
        match self.lost.first().filter(|_| resends) {
            Some(first) => first.len().min(self.mss),
            None => self.new_bytes().map_or(0, |new| new.len()),
        }
    }

    /// Hands the next packet's bytes to the LCM.
    pub fn take_for_low(&mut self, resends: bool) -> Option<Range> {
        let lost = if resends { self.lost.pop(self.mss) } else { None };
        lost.or_else(|| self.take_new())
    }

    fn take_new(&mut self) -> Option<Range> {
        let range = self.new_bytes()?;
        self.nxt = range.end;
        Some(range)
    }

    /// The bytes of the HCM that the whole stream waits for: from its first virtual byte that is not
    /// acknowledged, `una`, if they are not acknowledged as actual ones.
    pub fn first_of_high(&self, una: u64) -> Option<Range> {
        let run = self.map.actual(una)?;
        (run.end > self.una).then(|| Range { end: run.end.min(run.start + self.mss), ..run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    fn stream(bytes: u64, window: u64) -> Stream {
        let mut stream = Stream::new(10, window);
        stream.write(bytes);
        stream
    }

    fn credit(ack: u64, window: u64) -> Credit {
        Credit { ack, window, is_low_off: false }
    }

    #[test]
    fn the_hcm_serves_the_retransmit_buffer_first_and_the_lcm_takes_new_bytes_only() {
        let mut stream = stream(100, 100);
        assert_eq!(stream.take_for_high(), Some(range(0, 10)));
        assert_eq!(stream.take_for_low(false), Some(range(10, 20)));
        assert_eq!(stream.take_for_low(false), Some(range(20, 30)));
        stream.lost().insert(range(10, 20));
        assert_eq!(stream.take_for_low(false), Some(range(30, 40)));
        assert_eq!(stream.take_for_high(), Some(range(10, 20)));
        assert_eq!(stream.take_for_high(), Some(range(40, 50)));
        assert_eq!(stream.map().actual(0), Some(range(0, 20)));
    }

    #[test]
    fn the_lcm_takes_lost_bytes_when_it_is_asked_to() {
        let mut stream = stream(100, 100);
        assert_eq!(stream.take_for_low(true), Some(range(0, 10)));
        stream.lost().insert(range(0, 10));
        assert_eq!(stream.next_len_for_low(true), 10);
        assert_eq!(stream.take_for_low(true), Some(range(0, 10)));
        assert_eq!(stream.take_for_low(true), Some(range(10, 20)));
    }

    #[test]
    fn both_sub_flows_together_stay_within_the_receive_window() {
        let mut stream = stream(100, 35);
        stream.take_for_high();
        stream.take_for_low(false);
        stream.take_for_low(false);
        assert!(stream.is_held(), "half a packet is not worth sending");
        assert_eq!((stream.take_for_high(), stream.take_for_low(true)), (None, None));
        assert!(stream.on_credit(&credit(10, 35)));
        assert_eq!(stream.take_for_low(false), Some(range(30, 40)));
        stream.on_credit(&credit(40, 5));
        assert_eq!(stream.take_for_high(), Some(range(40, 45)), "but nothing else is on its way");
    }

    #[test]
    fn what_the_receiver_has_need_not_be_sent_again() {
        let mut stream = stream(100, 100);
        for _ in 0..3 {
            stream.take_for_low(false);
        }
        stream.lost().insert(range(0, 20));
        stream.on_credit(&credit(10, 100));
        assert_eq!(stream.take_for_high(), Some(range(10, 20)));
        assert_eq!(stream.first_of_high(0), Some(range(10, 20)));
        stream.on_credit(&credit(20, 100));
        assert_eq!(stream.first_of_high(0), None);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
        let mut stream = stream(100, 30);
        stream.take_for_low(false);
        assert!(!stream.on_credit(&credit(50, 1_000)));
        assert_eq!((stream.una(), stream.window()), (0, 30));
        assert!(stream.on_credit(&credit(10, u64::MAX)));
    }

    #[test]
    fn it_is_delivered_when_it_has_ended_and_all_is_acknowledged() {
        let mut stream = stream(15, 100);
        assert_eq!(
            (stream.take_for_high(), stream.take_for_low(false)),
            (Some(range(0, 10)), Some(range(10, 15)))
        );
        stream.on_credit(&credit(15, 100));
        assert!(!stream.is_delivered());
        stream.finish();
        stream.write(10);
        assert!(stream.is_delivered());
    }
}
