//! Buffers for the packets under way. One that is dropped, wherever in the network that happens,
//! goes back to its pool, so that in the steady state nothing is allocated per packet.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Buffers of one length, up to a number.
pub(super) struct Pool {
    free: RefCell<Vec<Box<[u8]>>>,
    /// Length of each in bytes.
    len: usize,
    /// How many exist.
    count: Cell<usize>,
    /// How many may exist.
    count_max: usize,
}

impl Pool {
    /// A pool of buffers of `len` bytes that never takes more than `memory` bytes.
    pub(super) fn new(len: usize, memory: usize) -> Rc<Pool> {
        let count_max = (memory / len.max(1)).max(1);
        Rc::new(Pool { free: RefCell::default(), len, count: Cell::new(0), count_max })
    }

    /// A buffer with whatever it held before; `None` when all are in use.
    pub(super) fn take(self: &Rc<Pool>) -> Option<Buffer> {
        let free = self.free.borrow_mut().pop();
        let bytes = free.or_else(|| {
            let count = self.count.get();
            (count < self.count_max).then(|| {
                self.count.set(count + 1);
                vec![0; self.len].into_boxed_slice()
            })
        })?;
        Some(Buffer { bytes, used: 0, pool: Rc::clone(self) })
    }

    /// How many buffers exist: the most that were in use at once.
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }
}

/// A packet's bytes.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    /// How many of them are the packet's.
    pub(super) used: u32,
    pool: Rc<Pool>,
}

impl Buffer {
    /// All of it, to read into.
    pub(super) fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The packet.
    pub(super) fn packet(&self) -> &[u8] {
        &self.bytes[..(self.used as usize).min(self.bytes.len())]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.free.borrow_mut().push(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_used_again_and_no_more_exist_than_may() {
        let pool = Pool::new(100, 250);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert!(pool.take().is_none(), "250 bytes are two buffers");
        drop(first);
        let mut third = pool.take().unwrap();
        third.used = 3;
        third.space()[..3].copy_from_slice(b"abc");
        assert_eq!(third.packet(), b"abc");
        drop((second, third));
        assert_eq!((pool.count(), pool.free.borrow().len()), (2, 2));
    }
}
