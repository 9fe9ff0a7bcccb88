//! Properties of the policy engine for any text that a model or a file may contain.
//!
//! Each module has one function `check(&str)` that panics if a property is violated: the parsers of rules, command
//! lines, paths, addresses, settings and messages of language servers accept or refuse every text, the verdict is the same every time, an allow rule
//! never tightens, and a deny rule never loosens.
//! The fuzz targets in `fuzz_targets/` call it with generated texts through [`check`], which also limits the time.
//! Tests of the crates call it with the seeds in `seeds/`, so that a regression is found without a fuzzer.
//!
//! This crate does not test what a verdict should be for a certain text; the tests of the policy crate do.

mod codex;
mod judge_call;
#[cfg(feature = "messages")]
mod messages;
#[cfg(feature = "pages")]
mod pages;
mod paths;
mod rules;
#[cfg(feature = "settings")]
mod settings;
mod shell;
mod skills;
mod urls;

use rustix::time::{ClockId, clock_gettime};

/// How much processor time the check of one text may take.
const MAX_CHECK_MS: i64 = 100;

/// What a text is parsed as.
#[derive(Debug, Clone, Copy)]
pub enum InputKind {
    /// A permission rule.
    Rule,
    /// A bash command line.
    Command,
    /// A path in the first line, and a pattern for it in the second.
    Path,
    /// An address.
    Url,
    /// A rules file of Codex.
    Codex,
    /// The output of a language server.
    #[cfg(feature = "messages")]
    Message,
    /// A skill, an agent or a plugin manifest.
    Skill,
    /// An HTML page.
    #[cfg(feature = "pages")]
    Page,
    /// A settings file.
    #[cfg(feature = "settings")]
    Settings,
}

/// Checks a text, and panics if the check takes too long.
///
/// Processor time is measured, not elapsed time, because a fuzzer shares its machine. The fastest of three checks
/// counts, because a virtual machine also counts time in which its host did not run it.
pub fn check(kind: InputKind, text: &str) {
    let check = match kind {
        InputKind::Rule => rules::check,
        InputKind::Command => shell::check,
        InputKind::Path => paths::check,
        InputKind::Url => urls::check,
        InputKind::Codex => codex::check,
        #[cfg(feature = "messages")]
        InputKind::Message => messages::check,
        InputKind::Skill => skills::check,
        #[cfg(feature = "pages")]
        InputKind::Page => pages::check,
        #[cfg(feature = "settings")]
        InputKind::Settings => settings::check,
    };
    let milliseconds = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
    };
    let is_slow = || {
        let before = milliseconds();
        check(text);
        milliseconds() - before >= MAX_CHECK_MS
    };
    assert!(!(0..3).all(|_| is_slow()), "slow: more than {MAX_CHECK_MS} ms for {} bytes", text.len());
}
