//! anabranch's lab: a scenario file in, tables, plots and verdicts out.
//!
//! Where to look:
//! - [`scenario`]: what a scenario file says, and what is wrong with it;
//! - [`plan`]: the runs of a scenario, checked before any begins; [`engine`]: one run;
//! - [`runner`]: all runs on all cores; [`results`]: what is written to disk;
//! - [`table`]: tidy tables, what every result is made of, and their CSV form;
//! - [`stats`]: what may be said about a handful of runs;
//! - [`figure`]: plots, as data and as SVG;
//! - [`report`]: the page a person reads first;
//! - [`claims`]: what the papers report, as data, and what running it says;
//! - [`scenarios`]: those that come with the program.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod claims;
pub mod engine;
pub mod figure;
pub mod plan;
pub mod report;
pub mod results;
pub mod runner;
pub mod scenario;
pub mod scenarios;
pub mod stats;
pub mod table;
