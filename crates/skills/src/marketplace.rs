//! `marketplace.json`: a list of plugins and where each comes from.

use crate::plugin_manifest::{PluginManifest, check_component_path, find_key_line, read_component_json};
use crate::problem::{CapabilityProblem, CapabilitySeverity};
use serde_json::Value;

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginOrigin {
    /// A directory of the marketplace, beginning with `./`.
    Path(String),
    /// A git repository.
    Git {
        /// Its address.
        url: String,
        /// The branch or tag; absent means the default branch.
        reference: Option<String>,
        /// The commit that it must be.
        commit: Option<String>,
        /// The directory of the plugin in it, without `./`.
        subdir: Option<String>,
    },
    /// A kind that toolgate does not install.
    Unsupported(String),
}

/// A plugin of a marketplace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MarketplaceEntry {
    /// Where the plugin comes from.
    pub origin: PluginOrigin,
    /// Whether the plugin's own manifest counts, and the entry adds to it. Otherwise the entry is the manifest.
    pub is_strict: bool,
    /// The fields of a manifest that the entry has.
    pub manifest: PluginManifest,
}

/// A list of plugins.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PluginMarketplace {
    /// Its name.
    pub name: String,
    /// Its plugins.
    pub plugins: Vec<MarketplaceEntry>,
}

impl PluginMarketplace {
    /// Reads a list. An entry that cannot be used is left out, with an error that names it.
    pub fn read(bytes: &[u8]) -> (Option<Self>, Vec<CapabilityProblem>) {
        let value = match read_component_json(bytes) {
            Ok(value) => value,
            Err(problem) => return (None, vec![problem]),
        };
        let mut problems = Vec::new();
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Err(problem) = crate::check_capability_name(name) {
            problems.push(CapabilityProblem::error(find_key_line(bytes, "name"), problem));
            return (None, problems);
        }
        let Some(entries) = value.get("plugins").and_then(Value::as_array) else {
            problems.push(CapabilityProblem::error(1, "the marketplace has no list `plugins`"));
            return (None, problems);
        };
        let mut marketplace = Self { name: name.to_owned(), plugins: Vec::new() };
        for entry in entries {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or("without a name");
            let line = find_entry_line(bytes, name);
            match read_entry(entry, line) {
                Ok(entry) if marketplace.find(&entry.manifest.name).is_some() => {
                    let message =
                        format!("the plugin `{}` is listed twice; the first one counts", entry.manifest.name);
                    problems.push(CapabilityProblem::warning(line, message));
                }
                Ok(entry) => marketplace.plugins.push(entry),
                Err(problem) => {
                    let message = format!("the plugin `{}` cannot be used: {problem}", name.escape_debug());
                    problems.push(CapabilityProblem::error(line, message));
                }
            }
        }
        (Some(marketplace), problems)
    }

    /// The plugin of a name.
    pub fn find(&self, name: &str) -> Option<&MarketplaceEntry> {
        self.plugins.iter().find(|entry| entry.manifest.name == name)
    }
}

/// The line of the entry with a name.
fn find_entry_line(bytes: &[u8], name: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let quoted = format!("\"{name}\"");
    text.lines()
        .position(|line| line.contains("\"name\"") && line.contains(&quoted))
        .map_or(1, |index| index + 1)
}

/// Reads one plugin of the list. The error says why it cannot be offered; the others are.
fn read_entry(entry: &Value, line: usize) -> Result<MarketplaceEntry, String> {
    let Value::Object(fields) = entry else { return Err("it is not an object".to_owned()) };
    let (manifest, problems) = PluginManifest::from_fields(fields, &|_| line);
    let Some(manifest) = manifest else {
        let worst = problems.into_iter().find(|problem| problem.severity == CapabilitySeverity::Error);
        return Err(worst.map_or_else(|| "it cannot be read".to_owned(), |problem| problem.message));
    };
    let is_strict = match fields.get("strict") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(strict)) => *strict,
        Some(_) => return Err("`strict` is neither true nor false".to_owned()),
    };
    Ok(MarketplaceEntry { origin: read_origin(fields.get("source"))?, is_strict, manifest })
}

/// Where a plugin comes from. A source that is not supported is an error and never another place.
fn read_origin(source: Option<&Value>) -> Result<PluginOrigin, String> {
    let source = source.ok_or("it has no `source`")?;
    if let Value::String(path) = source {
        check_component_path(path)?;
        return Ok(PluginOrigin::Path(path.clone()));
    }
    let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = text("source").ok_or("its `source` is neither a path nor an object with `source`")?;
    let url = match kind.as_str() {
        "github" => {
            let repository = text("repo").ok_or("its source `github` has no `repo`")?;
            let fits = |part: &str| {
                !part.is_empty()
                    && !part.starts_with(['-', '.'])
                    && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            };
            let is_pair = repository.split_once('/').is_some_and(|(owner, name)| fits(owner) && fits(name));
            if !is_pair {
                return Err(format!("its `repo` `{}` is not `owner/name`", repository.escape_debug()));
            }
            format!("https://github.com/{repository}.git")
        }
        "url" | "git" | "git-subdir" => {
            text("url").ok_or_else(|| format!("its source `{kind}` has no `url`"))?
        }
        other => return Ok(PluginOrigin::Unsupported(other.chars().take(40).collect())),
    };
    let subdir = match text("path").map(|path| path.trim_start_matches("./").trim_end_matches('/').to_owned())
    {
        Some(path) if !path.is_empty() => {
            check_component_path(&format!("./{path}"))?;
            Some(path)
        }
        _ => None,
    };
    let (reference, commit) = (text("ref"), text("sha"));
    if commit.as_ref().is_some_and(|sha| sha.len() < 7 || !sha.chars().all(|c| c.is_ascii_hexdigit())) {
        return Err("its `sha` is not a commit".to_owned());
    }
    if reference.as_ref().is_some_and(|name| name.starts_with('-') || name.chars().any(char::is_whitespace)) {
        return Err("its `ref` is not the name of a branch or tag".to_owned());
    }
    Ok(PluginOrigin::Git { url, reference, commit, subdir })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_bad_ones_are_named() {
        let (market, problems) = PluginMarketplace::read(
            br#"{"name": "m", "owner": {"name": "o"}, "plugins": [
                {"name": "a", "source": "./a"},
                {"name": "b", "source": {"source": "github", "repo": "o/r", "ref": "v1"}},
                {"name": "c", "source": {"source": "git-subdir", "url": "https://h/r.git", "path": "./x/y", "sha": "0123456789"}},
                {"name": "d", "source": {"source": "npm", "package": "x"}, "strict": false},
                {"name": "e", "source": "../e"},
                {"name": "f", "source": {"source": "github", "repo": "--upload-pack=x/y"}},
                {"name": "a", "source": "./other"}]}"#,
        );
        let market = market.unwrap();
        assert_eq!(market.find("a").unwrap().origin, PluginOrigin::Path("./a".to_owned()));
        let git = |url: &str, reference: Option<&str>, commit: Option<&str>, subdir: Option<&str>| {
            PluginOrigin::Git {
                url: url.to_owned(),
                reference: reference.map(str::to_owned),
                commit: commit.map(str::to_owned),
                subdir: subdir.map(str::to_owned),
            }
        };
        assert_eq!(
            market.find("b").unwrap().origin,
            git("https://github.com/o/r.git", Some("v1"), None, None)
        );
        assert_eq!(
            market.find("c").unwrap().origin,
            git("https://h/r.git", None, Some("0123456789"), Some("x/y"))
        );
        assert_eq!(market.find("d").unwrap().origin, PluginOrigin::Unsupported("npm".to_owned()));
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [6, 7, 2], "{problems:?}");
    }
}
