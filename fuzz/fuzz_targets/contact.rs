//! Contacts: whatever a peer says of its addresses, a bounded list comes out.
#![no_main]

use anabranch_node::address::{ADDRESSES_MAX, addresses};
use anabranch_proto::id::Contact;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let contact = Contact { addresses: bytes.to_vec(), reachable: true };
    assert!(addresses(&contact).len() <= ADDRESSES_MAX);
});
