//! The program as users run it: real processes over loopback, each test bounded in time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and says where")]

mod contents;
mod interruptions;
mod lab;
mod refusals;
mod stage;
mod swarms;
