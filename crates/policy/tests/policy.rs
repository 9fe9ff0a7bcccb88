//! The policy crate's integration tests, one module for each thing that is promised.

#[cfg(test)]
#[path = "policy/cases.rs"]
mod cases;
#[cfg(test)]
#[path = "policy/corpus.rs"]
mod corpus;
#[cfg(test)]
#[path = "policy/explain.rs"]
mod explain;
#[cfg(test)]
#[path = "policy/laws.rs"]
mod laws;
#[cfg(test)]
#[path = "policy/world.rs"]
mod world;
