//! What the tests of several crates share: fakes for people, and the laws that every extension must keep.

#![forbid(unsafe_code)]

mod workplace;

pub use workplace::{Workplace, plain_gate};
