//! availability
/// Summary placeholder.
pub struct Summary;
/// kind placeholder.
pub struct SummaryKind;
