//! What a member says it has: exact bitmaps, and short summaries of them.

pub mod availability;
pub mod bitmap;
pub mod exact;

pub use availability::{Summary, SummaryKind};
pub use bitmap::Bitmap;
pub use exact::Exact;
