//! The task of one link: socket to store and store to socket, in bounded turns.

use super::receive::{Broken, Receiver};
use super::transmit::Transmitter;
use super::{FrameReader, Link, LinkEvent};
use crate::clock;
use crate::group::{Inbound, Shared};
use crate::tls::record::{Keys, RECORD_LEN_MAX, RecordError, record_len};
use anabranch_proto::link::MESSAGE_LEN_MAX;
use anabranch_proto::overlay::DownReason;
use anabranch_proto::time::{Time, earliest};
use socket2::SockRef;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Bytes taken from the socket at once.
const RECEIVE_LEN: usize = 128 * 1024;
/// Rounds of reading and writing before other tasks get a turn.
const ROUNDS_MAX: usize = 4;
/// How long a closed connection waits for the far end to close too.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

thread_local! {
    /// Where sealed bytes are received and opened: one for all links of a thread, so that it
    /// stays in the processor's cache. Before it is room for the start of a record that came
    /// earlier.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The link cannot go on.
struct Ended;

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended
    }
}
impl From<RecordError> for Ended {
    fn from(_: RecordError) -> Ended {
        Ended
    }
}
impl From<Broken> for Ended {
    fn from(_: Broken) -> Ended {
        Ended
    }
}

struct Task {
    link: Arc<Link>,
    group: Arc<Shared>,
    stream: TcpStream,
    open: Keys,
    reader: FrameReader,
    receiver: Receiver,
    transmitter: Transmitter,
    /// Unsent bytes above which the kernel was last told to take no more.
    kernel_backlog: u64,
    /// The start of a record whose end has not come.
    carry: Vec<u8>,
    /// When a rate limit lets this link go on, if one holds it up.
    limited_until: Option<Time>,
    sleep: Pin<Box<Sleep>>,
    sleep_until: Time,
}

/// Runs a link until it is over; its last event is [`LinkEvent::Down`].
pub(crate) async fn run(
    link: Arc<Link>,
    group: Arc<Shared>,
    stream: TcpStream,
    seal: Keys,
    open: Keys,
) {
    let mut task = Task {
        receiver: Receiver::new(link.clone(), group.clone()),
        link,
        group,
        stream,
        open,
        reader: FrameReader::new(MESSAGE_LEN_MAX),
        transmitter: Transmitter::new(seal),
        kernel_backlog: 0,
        carry: Vec::new(),
        limited_until: None,
        sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
        sleep_until: Time::FAR,
    };
    let reason = task.serve().await;
    if reason == DownReason::Local {
        // Closing with unread bytes would reset the connection and lose what was sent last.
        let _ = tokio::time::timeout(CLOSE_WAIT, task.close()).await;
    }
    let inbox = task.group.inbox.clone();
    let down = Inbound::Link(task.link.id, LinkEvent::Down(reason));
    drop(task);
    // The group may have ended first.
    let _ = inbox.send(down).await;
}

impl Task {
    async fn serve(&mut self) -> DownReason {
        loop {
            let turn = poll_fn(|cx| self.poll_turn(cx)).await;
            if turn.is_err() {
                // What the session says already is the better reason.
                self.link.lock().session.fail(DownReason::Broken);
                self.receiver.drain();
            }
            while let Some(event) = self.receiver.outbox.pop_front() {
                if self.group.inbox.send(Inbound::Link(self.link.id, event)).await.is_err() {
                    return DownReason::Local;
                }
            }
            if let Some(reason) = self.receiver.down {
                return reason;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut rest = [0; 4096];
        while self.stream.read(&mut rest).await? > 0 {}
        Ok(())
    }

    /// Moves bytes until there is something for the actor, the link is over, or others must have
    /// their turn.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        for _ in 0..ROUNDS_MAX {
            self.receiver.now = clock::now();
            self.limited_until = None;
            let mut moved = self.receive(cx)?;
            moved |= self.transmit(cx)?;
            if self.receiver.down.is_some() || !self.receiver.outbox.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if !moved {
                match self.rest(cx) {
                    true => return Poll::Pending,
                    false => continue,
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once; whether anything came.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        let limit = &self.group.core.down;
        if let Some(at) = limit.opens_at(self.receiver.now) {
            self.limited_until = earliest(self.limited_until, Some(at));
            return Ok(false);
        }
        let len = limit.piece_max(RECEIVE_LEN);
        RECEIVED.with_borrow_mut(|bytes| {
            bytes.resize(RECORD_LEN_MAX + RECEIVE_LEN, 0);
            let mut buffer = ReadBuf::new(&mut bytes[RECORD_LEN_MAX..RECORD_LEN_MAX + len]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Ok(false),
                Poll::Ready(read) => read?,
            }
            let count = buffer.filled().len();
            if count == 0 {
                return Err(Ended);
            }
            self.group.core.down.spend(self.receiver.now, count);
            self.group.counters.wire_down.fetch_add(count as u64, Ordering::Relaxed);
            let start = RECORD_LEN_MAX - self.carry.len();
            bytes[start..RECORD_LEN_MAX].copy_from_slice(&self.carry);
            self.open_records(&mut bytes[start..RECORD_LEN_MAX + count])?;
            Ok(true)
        })
    }

    fn open_records(&mut self, mut bytes: &mut [u8]) -> Result<(), Ended> {
        while let Some(len) = record_len(bytes)?
            && len <= bytes.len()
        {
            let (record, rest) = bytes.split_at_mut(len);
            let plain = self.open.open(record)?;
            self.reader.feed(plain, &mut self.receiver)?;
            bytes = rest;
        }
        self.carry.clear();
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what the socket takes, at most one full buffer; whether it took anything.
    fn transmit(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        if self.transmitter.unsent().is_empty() {
            let outbox = &mut self.receiver.outbox;
            let now = self.receiver.now;
            let filled = self.transmitter.fill(now, &self.link, &self.group, outbox)?;
            self.limited_until = earliest(self.limited_until, filled.limited_until);
        }
        let mut count = 0;
        if !self.transmitter.unsent().is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, self.transmitter.unsent()) {
                Poll::Pending => {}
                Poll::Ready(written) => count = written?,
            }
            self.transmitter.advance(count);
            self.group.counters.wire_up.fetch_add(count as u64, Ordering::Relaxed);
        }
        let mut state = self.link.lock();
        state.session.set_pipe_unsent(self.receiver.now, self.transmitter.backlog());
        let backlog = state.session.backlog();
        if state.session.is_flushed() && self.transmitter.is_empty() {
            state.session.fail(DownReason::Local);
        }
        drop(state);
        self.receiver.drain();
        self.bound_kernel(backlog)?;
        Ok(count > 0)
    }

    /// Lets the kernel hold as much as the session wants to wait there.
    fn bound_kernel(&mut self, backlog: u64) -> io::Result<()> {
        if backlog == self.kernel_backlog {
            return Ok(());
        }
        self.kernel_backlog = backlog;
        SockRef::from(&self.stream)
            .set_tcp_notsent_lowat(u32::try_from(backlog).unwrap_or(u32::MAX))
    }

    /// Prepares to sleep until the socket, the session or the clock has something to do; false
    /// when one has already.
    fn rest(&mut self, cx: &mut Context<'_>) -> bool {
        let mut state = self.link.lock();
        let blocked = self.limited_until.is_some() || !self.transmitter.unsent().is_empty();
        if state.session.wants_transmit() && !blocked {
            return false;
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        let wanted = earliest(state.session.next_deadline(), self.limited_until);
        drop(state);
        self.poll_sleep(cx, wanted)
    }

    /// Whether the task may sleep. The timer is moved only when it would ring too late: a
    /// deadline that was put off costs one early wake-up instead of a timer change per read.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, wanted: Option<Time>) -> bool {
        let Some(wanted) = wanted else { return true };
        let now = clock::now();
        if wanted <= now {
            self.link.lock().session.handle_deadline(now);
            self.receiver.drain();
            return false;
        }
        if wanted < self.sleep_until || self.sleep.is_elapsed() {
            self.sleep_until = wanted;
            self.sleep.as_mut().reset(clock::instant(wanted));
        }
        self.sleep.as_mut().poll(cx).is_pending()
    }
}
