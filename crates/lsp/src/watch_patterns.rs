//! Which files a server wants to be notified of: the patterns of `workspace/didChangeWatchedFiles`.

use crate::language_server::FileEvent;
use crate::uri_path::to_path;
use gen_lsp_types::Uri;
use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;
use toolgate_proto::AbsPath;

/// Patterns of one registration that are kept.
const MAX_PATTERNS: usize = 500;
/// Characters of a pattern.
const MAX_PATTERN_CHARS: usize = 1_000;

/// The patterns of one registration.
#[derive(Debug, Default)]
pub(crate) struct WatchPatterns {
    /// A file is reported if one of them matches.
    patterns: Vec<WatchPattern>,
}

/// One pattern.
#[derive(Debug)]
struct WatchPattern {
    /// The directory that the pattern is relative to.
    base: AbsPath,
    /// Matches a path relative to `base`, or an absolute one; `None` matches every file below `base`.
    glob: Option<GlobMatcher>,
    /// The bits of the events that the server wants: 1 created, 2 changed, 4 deleted.
    kinds: u64,
}

impl WatchPatterns {
    /// Reads the options of a registration. A pattern that cannot be read matches every file: a server that is notified too
    /// often checks a file needlessly, one that is notified too rarely answers wrongly.
    pub(crate) fn read(options: &Value, root: &AbsPath) -> Self {
        let watchers = options.get("watchers").and_then(Value::as_array).into_iter().flatten();
        Self { patterns: watchers.take(MAX_PATTERNS).map(|watcher| read_pattern(watcher, root)).collect() }
    }

    /// Whether the server registered for an event of a file.
    pub(crate) fn matches(&self, path: &AbsPath, event: FileEvent) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(path, event))
    }
}

impl WatchPattern {
    /// Whether the server registered for an event of a file.
    fn matches(&self, path: &AbsPath, event: FileEvent) -> bool {
        let wanted = match event {
            FileEvent::Created => 1,
            FileEvent::Changed => 2,
            FileEvent::Deleted => 4,
        };
        if self.kinds & wanted == 0 {
            return false;
        }
        let relative = path.as_path().strip_prefix(self.base.as_path()).ok();
        match &self.glob {
            Some(glob) => {
                relative.is_some_and(|relative| glob.is_match(relative)) || glob.is_match(path.as_path())
            }
            None => relative.is_some(),
        }
    }
}

/// Reads one watcher: a pattern relative to the root, or an object with a base of its own.
fn read_pattern(watcher: &Value, root: &AbsPath) -> WatchPattern {
    let pattern = watcher.get("globPattern").unwrap_or(&Value::Null);
    let base = pattern.get("baseUri").and_then(|base| base.get("uri").unwrap_or(base).as_str());
    let base = base.and_then(|uri| to_path(&Uri(uri.to_owned()))).unwrap_or_else(|| root.clone());
    let text = pattern.as_str().or_else(|| pattern.get("pattern").and_then(Value::as_str));
    let text = text.filter(|text| text.len() <= MAX_PATTERN_CHARS);
    let glob = text.and_then(|text| GlobBuilder::new(text).literal_separator(true).build().ok());
    WatchPattern {
        base,
        glob: glob.map(|glob| glob.compile_matcher()),
        kinds: watcher.get("kind").and_then(Value::as_u64).unwrap_or(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_match_by_path_base_and_kind() {
        let root = AbsPath::new("/project").unwrap();
        let matches = |watcher: Value, path: &str, event: FileEvent| {
            let patterns = WatchPatterns::read(&json!({ "watchers": [watcher] }), &root);
            patterns.matches(&AbsPath::new(path).unwrap(), event)
        };
        let changed = FileEvent::Changed;
        assert!(matches(json!({ "globPattern": "**/*.{py,pyi}" }), "/project/a/b.py", changed));
        assert!(matches(json!({ "globPattern": "**/*.py" }), "/project/b.py", changed));
        assert!(!matches(json!({ "globPattern": "*.py" }), "/project/a/b.py", changed));
        assert!(!matches(json!({ "globPattern": "**/*.py" }), "/project/b.txt", changed));
        assert!(matches(json!({ "globPattern": "/project/**/*.rs" }), "/project/src/b.rs", changed));
        let based = json!({ "globPattern": { "baseUri": "file:///other", "pattern": "*.rs" } });
        assert!(matches(based.clone(), "/other/b.rs", changed));
        assert!(!matches(based, "/project/b.rs", changed));
        let created = json!({ "globPattern": "**", "kind": 1 });
        assert!(matches(created.clone(), "/project/b", FileEvent::Created));
        assert!(!matches(created.clone(), "/project/b", changed));
        assert!(!matches(created, "/project/b", FileEvent::Deleted));
        // What cannot be read matches too much instead of too little.
        assert!(matches(json!({ "globPattern": "[" }), "/project/b", changed));
        assert!(matches(json!({ "globPattern": 5 }), "/project/b", changed));
        assert!(!matches(json!({ "globPattern": "[" }), "/elsewhere/b", changed));
    }
}
