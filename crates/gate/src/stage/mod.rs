//! The stages, one file each. Their order is in `pipeline.rs`, not here.

pub(crate) mod resolve;
pub(crate) mod validate;

pub(crate) mod screen;

pub(crate) mod judge;

pub(crate) mod settle;

pub(crate) mod guard;

pub(crate) mod run;

pub(crate) mod finish;
