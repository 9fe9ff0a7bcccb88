//! The policy crate's integration tests, one module for each thing that is promised.

#[path = "policy/cases.rs"]
mod cases;
#[path = "policy/corpus.rs"]
mod corpus;
#[path = "policy/laws.rs"]
mod laws;
#[path = "policy/world.rs"]
mod world;
