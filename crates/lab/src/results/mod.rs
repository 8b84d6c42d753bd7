//! Results on disk: finished runs while it goes on, tables, summary, figures and a page at the end.

pub mod cache;
pub mod collect;
mod figures;
mod folder;
mod page;
mod summary;
mod words;

pub use collect::tables;
pub use figures::figures;
pub use folder::{Folder, FolderError, How, Manifest, Status};
pub use summary::{CellSummary, Summary, summary};
