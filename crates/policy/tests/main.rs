//! The integration tests of the policy crate, in one binary: properties of decisions, and the shell analysis compared
//! with the corpus, with real bash, and with itself.

#![expect(
    clippy::disallowed_methods,
    clippy::string_slice,
    reason = "these tests run a real shell on real files, and stop at what they did not expect"
)]

#[cfg(test)]
mod policy {
    mod advice;
    mod case_files;
    mod corpus;
    pub(crate) mod fake_workspace;
    mod fuzz_seeds;
    mod gemini;
    mod git;
    mod git_readers;
    mod input_fields;
    mod judgement;
    mod mcp_arguments;
    mod offered_rules;
    mod plan_mode;
    mod policy_books;
    mod properties;
    mod queries;
    mod rights;
    mod rule_problems;
}

#[cfg(test)]
mod shell {
    pub(crate) mod corpus;
    mod effects;
    mod line_classes;
    mod options;
    pub(crate) mod oracle;
    mod programs;
    mod properties;
    pub(crate) mod random_numbers;
    mod scripts;
    mod simple_policy;
}
