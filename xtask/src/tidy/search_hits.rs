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
    ("audit log", "crates/gate/src/ledger/mod.rs"),
    ("homoglyph", "crates/policy/src/url/confusable.rs"),
    ("file descriptor", "crates/process/src/process/exec.rs"),
    ("system call", "crates/process/src/sandbox/seccomp_filter.rs"),
    ("process group", "crates/process/src/process/supervisor.rs"),
    ("SIGKILL", "crates/process/src/process/termination.rs"),
    ("inotify", "crates/files/src/directory_watch.rs"),
    ("image", "crates/tools/src/read/image.rs"),
    ("encoding", "crates/tools/src/text_encoding.rs"),
    ("plan mode", "crates/tools/src/enter_plan_mode.rs"),
    ("worktree", "crates/process/src/process/git/worktree.rs"),
    ("screenshot", "crates/tools/src/screenshot.rs"),
    ("readability", "crates/tools/src/web/choose_content.rs"),
    ("Markdown", "crates/tools/src/web/markdown_writer.rs"),
    ("prompt injection", "crates/tools/src/web/remove_hidden.rs"),
    ("DNS rebinding", "crates/net/src/web/mod.rs"),
    ("decompression bomb", "crates/net/src/web/decode_body.rs"),
    ("gzip", "crates/net/src/web/decode_body.rs"),
    ("TLS", "crates/net/src/web/dial.rs"),
    ("rate limit", "crates/net/src/web/host_pace.rs"),
    ("robots.txt", "crates/net/src/web/robots.rs"),
    ("WebSocket", "crates/net/src/web/web_socket.rs"),
    ("cache", "crates/net/src/web/page_cache.rs"),
    ("SQLite", "crates/state/src/database.rs"),
    ("full-text", "crates/state/src/memory/memory_index.rs"),
    ("cron", "crates/state/src/schedules/cron_expression.rs"),
    ("front matter", "crates/skills/src/front_matter.rs"),
    ("YAML", "crates/skills/src/front_matter.rs"),
    ("marketplace", "crates/skills/src/marketplace.rs"),
    ("language server", "crates/lsp/src/language_server.rs"),
    ("diagnostics", "crates/lsp/src/diagnostic_store.rs"),
    ("Content-Length", "crates/lsp/src/framing.rs"),
    ("subagent", "crates/agent/src/subagent/subagent_run.rs"),
    ("transcript", "crates/agent/src/session/transcript_writer.rs"),
    ("compaction", "crates/agent/src/compaction.rs"),
    ("context window", "crates/agent/src/compaction.rs"),
    ("token usage", "crates/agent/src/token_usage.rs"),
    ("prompt caching", "crates/agent/src/provider/anthropic_event.rs"),
    ("structured output", "crates/agent/src/structured_output.rs"),
    ("system prompt", "crates/agent/src/system_prompt.rs"),
    ("API key", "crates/toolgate/src/cli/run/key_helper.rs"),
    ("resume", "crates/toolgate/src/cli/run/stored_session.rs"),
    ("control protocol", "crates/host/src/lib.rs"),
    ("agent client protocol", "crates/host/src/acp/mod.rs"),
    ("plugin", "crates/toolgate/src/plugins/plugin_set.rs"),
    ("skill", "crates/toolgate/src/skills/skill_tool.rs"),
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
