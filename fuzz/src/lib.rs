//! What must hold of any text that a model or a file hands to the policy engine.
//!
//! Each module has one `check(&str)` that stops where a law is broken.
//! The targets in `fuzz_targets/` feed it with what a fuzzer makes up; ordinary tests of the crates feed it with the
//! seeds in `seeds/`.

mod desk;
mod paths;
mod rules;
#[cfg(feature = "settings")]
mod settings;
mod shell;
mod urls;

use rustix::time::{ClockId, clock_gettime};

/// No text may take longer.
const MOST_MILLISECONDS: i64 = 100;

/// What a text is taken for.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A permission rule.
    Rule,
    /// A command line.
    ShellKind,
    /// A path, and a pattern for it.
    Path,
    /// An address.
    Url,
    /// A settings file.
    #[cfg(feature = "settings")]
    Settings,
}

/// Checks a text, and stops if it took longer than any text of that size may.
/// Processor time counts, not the clock on the wall, because a fuzzer shares its machine; and the fastest of three
/// counts, because a virtual machine that had to wait for its host takes that for time it has used.
pub fn check(kind: Kind, text: &str) {
    let check = match kind {
        Kind::Rule => rules::check,
        Kind::ShellKind => shell::check,
        Kind::Path => paths::check,
        Kind::Url => urls::check,
        #[cfg(feature = "settings")]
        Kind::Settings => settings::check,
    };
    let milliseconds = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
    };
    let is_slow = || {
        let before = milliseconds();
        check(text);
        milliseconds() - before >= MOST_MILLISECONDS
    };
    assert!(!(0..3).all(|_| is_slow()), "slow: more than {MOST_MILLISECONDS} ms for {} bytes", text.len());
}
