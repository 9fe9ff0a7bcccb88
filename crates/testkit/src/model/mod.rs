//! The reference model: policy a second time, small and slow, written from the manual, to compare the engine with.
//!
//! The model shares nothing with the engine but its interface. It parses each rule again for every question, scans lists
//! from front to back, and tries wildcards one character at a time, with matchers of its own. It judges a command line by
//! the tree from which the text was rendered, so that the engine has to parse what the model knows.
//!
//! Its decision in one sentence: every rule, path, host and command of a call may raise an objection, the strictest
//! objection is the answer, and the mode decides about objections that no rule raised.
//!
//! What the model does not know (options of programs, expansions, trees, unusual spellings) is not generated; the corpus
//! and the fuzz targets cover it.
//!
//! [`ModelComparison`] generates policies and calls from a seed and asks both.

mod book;
mod command;
mod compare;
mod evaluator;
mod field_text;
mod generate_call;
mod generate_settings;
mod generated_call;
mod path;
mod rng;
mod rule;
mod shrink;
mod simulated_path;

pub use compare::{ModelComparison, ModelDisagreement};
