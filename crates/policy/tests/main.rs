//! The integration tests of the policy crate, in one binary: the properties of decisions, and the analysis of command
//! lines against the corpus, against real bash, and against itself.

#![expect(
    clippy::disallowed_methods,
    clippy::string_slice,
    reason = "these tests run a real shell on real files, and stop at what they did not expect"
)]

#[cfg(test)]
mod policy {
    mod cases;
    mod corpus;
    mod explain;
    mod gemini;
    mod git;
    mod hostile;
    mod laws;
    pub(crate) mod world;
}

#[cfg(test)]
mod shell {
    mod classes;
    mod corpus;
    mod dice;
    mod effects;
    mod options;
    mod oracle;
    mod programs;
    mod properties;
    mod simple_policy;
}
