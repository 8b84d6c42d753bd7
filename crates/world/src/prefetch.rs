//! Telling the processor what will be read soon. The simulator's only unsafe code: one instruction that
//! has no safe form, and no effect on anything but time.
#![allow(unsafe_code, reason = "the prefetch instruction takes a pointer")]

/// Bytes that memory moves at once.
const LINE: usize = 64;
/// Of something large no more is wanted than this.
const LINES_MAX: usize = 16;

/// Asks for the memory of `place`, and does not wait for it.
pub(crate) fn prefetch<T: ?Sized>(place: &T) {
    let start = std::ptr::from_ref(place).cast::<u8>();
    let first = start.addr() % LINE;
    let lines = (first + size_of_val(place)).div_ceil(LINE).min(LINES_MAX);
    for line in 0..lines {
        prefetch_line(start.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_: *const u8) {}
