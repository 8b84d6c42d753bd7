//! RanSub.
