//! Whom a member knows: the control tree, and RanSub's random subsets over it.

pub mod ransub;
pub mod tree;
