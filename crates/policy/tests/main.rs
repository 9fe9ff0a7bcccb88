//! The policy crate's integration tests, in one binary: what is promised of decisions, and the shell analysis against
//! the corpus, against real bash, and against itself.

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
    mod law;
    mod laws;
    mod options;
    mod oracle;
    mod programs;
}
