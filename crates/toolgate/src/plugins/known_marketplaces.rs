//! `strictKnownMarketplaces`: the only places that plugins may come from, by managed settings.
//!
//! An entry is a source as marketplaces write it, or a pattern. What cannot be read matches nothing: a list that an
//! administrator got wrong must not let in what it was written to keep out.

use super::plugin_source::PluginSource;
use fancy_regex::Regex;
use serde_json::Value;
use toolgate_files::resolve;
use toolgate_proto::AbsPath;

/// What managed settings say about where plugins may come from.
#[derive(Debug, Clone, Default)]
pub struct KnownMarketplaces {
    /// The entries; absent if every place may be used.
    entries: Option<Vec<AllowedPlace>>,
    /// Entries that match nothing, and why.
    problems: Vec<String>,
}

/// An entry of the list.
#[derive(Debug, Clone)]
enum AllowedPlace {
    /// A repository, with exactly this branch or tag.
    Git { address: String, reference: Option<String> },
    /// A directory.
    Directory(AbsPath),
    /// Repositories of hosts.
    Host(Regex),
    /// Directories.
    Path(Regex),
}

impl KnownMarketplaces {
    /// Reads the setting.
    pub fn read(value: Option<&Value>) -> Self {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Self::default() };
        let mut known = Self { entries: Some(Vec::new()), problems: Vec::new() };
        let Some(entries) = value.as_array() else {
            known.problems.push("it is not a list, so no plugin may be used".to_owned());
            return known;
        };
        for entry in entries {
            match read_place(entry) {
                Ok(place) => known.entries.get_or_insert_default().push(place),
                Err(problem) => {
                    let shown: String = entry.to_string().chars().take(80).collect();
                    known.problems.push(format!("the entry `{shown}` matches nothing: {problem}"));
                }
            }
        }
        known
    }

    /// Entries that match nothing, one line each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether plugins may come from a source. The error is for the user.
    pub fn check(&self, source: &PluginSource) -> Result<(), String> {
        let Some(entries) = &self.entries else { return Ok(()) };
        match entries.iter().any(|entry| entry.matches(source)) {
            true => Ok(()),
            false => Err(format!(
                "managed settings do not allow plugins from {source}; ask your administrator to add it to \
                 `strictKnownMarketplaces`"
            )),
        }
    }
}

impl AllowedPlace {
    /// Whether a source is what the entry names.
    fn matches(&self, source: &PluginSource) -> bool {
        let fits = |pattern: &Regex, text: &str| pattern.is_match(text).unwrap_or(false);
        match (self, source) {
            (Self::Git { address, reference }, PluginSource::Git { url, reference: given }) => {
                *address == plain_address(url) && reference == given
            }
            (Self::Directory(dir), PluginSource::Directory { path }) => {
                resolve(dir).real == resolve(path).real
            }
            (Self::Host(pattern), PluginSource::Git { url, .. }) => {
                host_of(url).is_some_and(|host| fits(pattern, &host))
            }
            (Self::Path(pattern), PluginSource::Directory { path }) => {
                fits(pattern, &resolve(path).real.to_string())
            }
            (Self::Git { .. } | Self::Host(_), PluginSource::Directory { .. })
            | (Self::Directory(_) | Self::Path(_), PluginSource::Git { .. }) => false,
        }
    }
}

/// Reads an entry.
fn read_place(entry: &Value) -> Result<AllowedPlace, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let needed = |key: &str| text(key).ok_or_else(|| format!("it has no `{key}`"));
    let kind = needed("source")?;
    let pattern = |key: &str| {
        // The whole text must fit, as with any other entry.
        let whole = format!("^(?:{})$", needed(key)?);
        Regex::new(&whole).map_err(|_| format!("`{key}` is not a regular expression"))
    };
    let reference = text("ref");
    match kind.as_str() {
        "github" => {
            let address = plain_address(&format!("https://github.com/{}", needed("repo")?));
            Ok(AllowedPlace::Git { address, reference })
        }
        "git" | "url" => Ok(AllowedPlace::Git { address: plain_address(&needed("url")?), reference }),
        "directory" | "file" => {
            let path = AbsPath::new(needed("path")?).map_err(|problem| problem.to_string())?;
            let list = "/.claude-plugin/marketplace.json";
            let dir = path.to_string().strip_suffix(list).and_then(|dir| AbsPath::new(dir).ok());
            Ok(AllowedPlace::Directory(dir.unwrap_or(path)))
        }
        "hostPattern" => Ok(AllowedPlace::Host(pattern("hostPattern")?)),
        "pathPattern" => Ok(AllowedPlace::Path(pattern("pathPattern")?)),
        other => Err(format!("plugins do not come from sources of the kind `{other}`")),
    }
}

/// An address in one spelling: without the scheme, the user and `.git`, so that all addresses of a repository are equal.
fn plain_address(url: &str) -> String {
    let rest = match url.split_once("://") {
        Some(("file", path)) => return format!("file:{}", path.trim_end_matches('/')),
        Some((_, rest)) => rest.to_owned(),
        // `user@host:path`
        None => url.replacen(':', "/", 1),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest.as_str(), ""));
    let host = host.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let path = path.trim_matches('/');
    format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path))
}

/// The host of an address, without a port.
fn host_of(url: &str) -> Option<String> {
    let plain = plain_address(url);
    let host = plain.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    (!host.is_empty() && host != "file").then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn git(url: &str, reference: Option<&str>) -> PluginSource {
        PluginSource::Git { url: url.to_owned(), reference: reference.map(str::to_owned) }
    }

    #[test]
    fn only_what_the_list_names_may_be_used() {
        let known = KnownMarketplaces::read(Some(&json!([
            { "source": "github", "repo": "acme/plugins" },
            { "source": "git", "url": "https://git.example.com/tools.git", "ref": "v2" },
            { "source": "hostPattern", "hostPattern": "git[0-9]+\\.corp\\.example" },
            { "source": "directory", "path": "/opt/plugins" },
            { "source": "pathPattern", "pathPattern": "/srv/plugins/.*" },
        ])));
        assert!(known.problems().is_empty(), "{known:?}");
        let dir = |path: &str| PluginSource::Directory { path: AbsPath::new(path).unwrap() };
        for allowed in [
            git("https://github.com/acme/plugins.git", None),
            git("https://github.com/acme/plugins", None),
            git("git@github.com:acme/plugins.git", None),
            git("ssh://git@GitHub.com/acme/plugins/", None),
            git("https://git.example.com/tools", Some("v2")),
            git("https://git7.corp.example/any/thing", Some("main")),
            git("ssh://git@git7.corp.example:2222/x", None),
            dir("/opt/plugins"),
            dir("/srv/plugins/mine"),
        ] {
            assert_eq!(known.check(&allowed), Ok(()), "{allowed}");
        }
        for refused in [
            git("https://github.com/acme/plugins2.git", None),
            git("https://github.com/evil/plugins", None),
            git("https://github.com/acme/plugins.git", Some("evil-branch")),
            git("https://git.example.com/tools.git", None),
            git("https://git.example.com/tools.git", Some("v3")),
            git("https://evil.example/github.com/acme/plugins", None),
            git("https://github.com@evil.example/acme/plugins", None),
            git("https://xgit7.corp.example.evil/x", None),
            git("file:///opt/plugins", None),
            dir("/opt/plugins/inner"),
            dir("/opt"),
            dir("/srv/plugins"),
        ] {
            assert!(known.check(&refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_lets_nothing_in() {
        let source = git("https://github.com/acme/plugins", None);
        assert_eq!(KnownMarketplaces::read(None).check(&source), Ok(()));
        assert_eq!(KnownMarketplaces::read(Some(&Value::Null)).check(&source), Ok(()));
        for value in [
            json!([]),
            json!("acme/plugins"),
            json!({ "source": "github", "repo": "acme/plugins" }),
            json!([{ "repo": "acme/plugins" }]),
            json!([{ "source": "github" }]),
            json!([{ "source": "npm", "package": "acme" }]),
            json!([{ "source": "hostPattern", "hostPattern": "(" }]),
            json!([null]),
        ] {
            let known = KnownMarketplaces::read(Some(&value));
            assert!(known.check(&source).is_err(), "{value}");
            assert_eq!(known.problems().is_empty(), value == json!([]), "{value}");
        }
    }
}
