//! Search hits: a plain search for a term of the field finds the file that implements it.
//!
//! The search ignores case and covers the sources of all crates. Hits are ordered as by a code search: files with the
//! word in their path first, then by the number of lines that contain it.

/// The implementing file has to be among the first so many hits.
const MAX_HIT_RANK: usize = 3;

/// A word, and the file that implements what it names.
const EXPECTED_HITS: &[(&str, &str)] = &[
    ("symlink", "crates/files/src/resolve.rs"),
    ("openat2", "crates/files/src/open.rs"),
    ("TOCTOU", "crates/files/src/lib.rs"),
    ("fsync", "crates/files/src/replace.rs"),
    ("rename", "crates/files/src/replace.rs"),
    ("hard link", "crates/files/src/hard_links.rs"),
    ("undo", "crates/files/src/journal/undo.rs"),
    ("journal", "crates/files/src/journal/mod.rs"),
    ("fingerprint", "crates/files/src/snapshot.rs"),
    ("seccomp", "crates/process/src/sandbox/seccomp_filter.rs"),
    ("user notification", "crates/process/src/sandbox/seccomp_notify/mod.rs"),
    ("landlock", "crates/process/src/sandbox/landlock_rules.rs"),
    ("mount namespace", "crates/process/src/sandbox/mask.rs"),
    ("bubblewrap", "crates/process/src/sandbox/bubblewrap.rs"),
    ("seatbelt", "crates/process/src/sandbox/seatbelt.rs"),
    ("supervisor", "crates/process/src/process/supervisor.rs"),
    ("subreaper", "crates/process/src/process/supervisor.rs"),
    ("proxy", "crates/process/src/proxy.rs"),
    ("environment variable", "crates/process/src/process/environment.rs"),
    ("gitignore", "crates/search/src/ignore_rules.rs"),
    ("ripgrep", "crates/search/src/lib.rs"),
    ("SSRF", "crates/proto/src/address.rs"),
    ("loopback", "crates/proto/src/address.rs"),
    ("redirect", "crates/shell-syntax/src/redirects.rs"),
    ("here-document", "crates/shell-syntax/src/parser/mod.rs"),
    ("wildcard", "crates/proto/src/wildcard.rs"),
    ("deny rule", "crates/policy/src/compile.rs"),
    ("timeout", "crates/tools/src/bash.rs"),
    ("deadline", "crates/gate/src/call_context.rs"),
    ("JSON schema", "crates/gate/src/schema.rs"),
    ("truncat", "crates/gate/src/truncate.rs"),
    ("lock table", "crates/gate/src/schedule/lock_table.rs"),
    ("approver", "crates/gate/src/approve/ask.rs"),
    ("hash chain", "crates/gate/src/ledger/chain.rs"),
    ("redact", "crates/gate/src/ledger/redact.rs"),
    ("server-sent events", "crates/gate/src/stream/sse.rs"),
    ("elicitation", "crates/mcp/src/server/elicitation.rs"),
    ("OAuth", "crates/mcp/src/client/oauth.rs"),
    ("retry", "crates/agent/src/provider/retry_policy.rs"),
    ("backpressure", "crates/mcp/src/line_transport.rs"),
    ("JSON-RPC", "crates/mcp/src/line_transport.rs"),
    ("unified diff", "crates/tools/src/diff.rs"),
    ("notebook", "crates/tools/src/notebook.rs"),
    ("PDF", "crates/tools/src/read/pdf.rs"),
    ("background task", "crates/tools/src/shell/tasks.rs"),
    ("trust", "crates/toolgate/src/settings/trust.rs"),
    ("OpenTelemetry", "crates/toolgate/src/telemetry.rs"),
    ("shell completion", "crates/toolgate/src/cli/completions.rs"),
];

/// Reports the words whose file is not among the first hits. `sources` are the files with their texts.
pub(super) fn check_search_hits(sources: &[(String, String)], broken: &mut Vec<String>) {
    for (word, file) in EXPECTED_HITS {
        let needle = word.to_lowercase();
        let in_path = needle.replace([' ', '-'], "_");
        let mut hits: Vec<(bool, usize, &str)> = sources
            .iter()
            .filter(|(name, _)| name.starts_with("crates/"))
            .map(|(name, text)| {
                let lines = text.to_lowercase().lines().filter(|line| line.contains(&needle)).count();
                (name.contains(&in_path), lines, name.as_str())
            })
            .filter(|(_, lines, _)| *lines > 0)
            .collect();
        hits.sort_by(|one, two| (two.0, two.1, one.2).cmp(&(one.0, one.1, two.2)));
        if !hits.iter().take(MAX_HIT_RANK).any(|(_, _, name)| name == file) {
            let first: Vec<&str> = hits.iter().take(MAX_HIT_RANK).map(|(_, _, name)| *name).collect();
            broken.push(format!("a search for `{word}` finds {} before {file}", first.join(", ")));
        }
    }
}
