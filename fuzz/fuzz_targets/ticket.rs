//! Tickets: whatever is typed gets a sentence or is a ticket that prints as it was read.
#![no_main]

use anabranch_node::Ticket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(ticket) = text.parse::<Ticket>() {
        let printed = ticket.to_string();
        assert!(printed.parse::<Ticket>().is_ok_and(|again| again == ticket));
    }
});
