//! Group parameters: what is accepted makes sense and is written as it was meant.
#![no_main]

use anabranch_node::content::info::GroupInfo;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(info) = GroupInfo::decode(bytes) {
        assert!(info.check().is_ok());
        let again = GroupInfo::decode(&info.encode());
        assert!(again.is_ok_and(|again| again.encode() == info.encode()));
    }
});
