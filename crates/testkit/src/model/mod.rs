//! The decision law a second time: small, slow, and written from the manual, to compare the engine with.
//!
//! Nothing here is shared with the engine but the words of its interface.
//! Rules are read from their text for every question, lists are walked from front to back, wildcards are tried one
//! character at a time. Command lines are judged as the trees they were rendered from, so that the engine has to read
//! what the model simply knows.
//!
//! The law in one sentence: every rule, path, host and command of a call may raise an objection, the strictest
//! objection is the answer, and the mode has the last word on objections that no rule raised.
//! What the model does not know (options of programs, live words, trees, odd spellings) is not generated: that is for
//! the corpus and the fuzz targets.
//!
//! [`ModelComparison`] makes up policies and calls from a seed and asks both.

mod book;
mod command;
mod compare;
mod evaluator;
mod generate;
mod path;
mod rng;
mod rule;
mod scenario;

pub use compare::{ModelComparison, ModelDisagreement};
