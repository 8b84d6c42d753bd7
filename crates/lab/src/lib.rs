//! anabranch's lab: a scenario file in, tables, plots and verdicts out.
//!
//! Where to look:
//! - [`scenario`]: what a scenario file says, and what is wrong with it;
//! - [`table`]: tidy tables, what every result is made of;
//! - [`figure`]: plots, as data.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod figure;
pub mod scenario;
pub mod table;
