//! Hellos: all that a stranger can make a listener read.
#![no_main]

use anabranch_proto::link::handshake::Hello;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(hello) = Hello::decode(bytes) {
        assert!(hello.contact.is_valid());
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    }
});
