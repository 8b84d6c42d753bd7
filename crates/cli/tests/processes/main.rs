//! The program as users run it: real processes over loopback, each test bounded in time.

mod contents;
mod interruptions;
mod refusals;
mod stage;
mod swarms;
