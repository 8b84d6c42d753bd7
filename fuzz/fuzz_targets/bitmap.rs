//! Bitmaps: what is read is within its length and is written as it was.
#![no_main]

use anabranch_proto::summary::Bitmap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (len, bytes) = input;
    if let Some(bitmap) = Bitmap::from_bytes(u32::from(len), bytes) {
        assert!(bitmap.iter().all(|index| index < u32::from(len)));
        assert_eq!(Bitmap::from_bytes(u32::from(len), &bitmap.to_bytes()), Some(bitmap));
    }
});
