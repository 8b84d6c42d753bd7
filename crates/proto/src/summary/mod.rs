//! What a member says it has: exact bitmaps, and short summaries of them.

pub mod availability;
pub mod bitmap;

pub use availability::{Summary, SummaryKind};
pub use bitmap::Bitmap;
