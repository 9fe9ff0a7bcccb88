//! `robots.txt`, as RFC 9309 has it: the group for our name or for `*`, and the longest matching path decides.

use toolgate_proto::wildcard::WildcardPattern;

/// The most rules that are kept of one file.
const MAX_ROBOTS_RULES: usize = 2_000;

/// The rules of one site for us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RobotsFile {
    /// Path patterns in order, and whether each allows.
    rules: Vec<(String, bool)>,
}

impl RobotsFile {
    /// Forbids everything: for a site whose file may not be read.
    pub fn forbid_all() -> Self {
        Self { rules: vec![("/".to_owned(), false)] }
    }

    /// Reads the group for `agent`, or the one for `*` if there is none.
    pub fn parse(text: &str, agent: &str) -> Self {
        let (mut own, mut general) = (Vec::new(), Vec::new());
        let (mut for_own, mut for_general, mut in_rules, mut has_own) = (false, false, true, false);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if in_rules {
                        (for_own, for_general, in_rules) = (false, false, false);
                    }
                    for_general |= value == "*";
                    let is_own = value.eq_ignore_ascii_case(agent);
                    for_own |= is_own;
                    has_own |= is_own;
                }
                "allow" | "disallow" => {
                    in_rules = true;
                    let rule = (value.to_owned(), key == "allow");
                    if value.is_empty() || own.len() + general.len() >= MAX_ROBOTS_RULES {
                        continue;
                    }
                    if for_own {
                        own.push(rule.clone());
                    }
                    if for_general {
                        general.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self { rules: if has_own { own } else { general } }
    }

    /// Whether a path with its query may be fetched. Of several rules the longest decides, and of two equally long ones the
    /// one that allows.
    pub fn allows(&self, path: &str) -> bool {
        let matching = self.rules.iter().filter(|(pattern, _)| matches_path(pattern, path));
        matching.max_by_key(|(pattern, allows)| (pattern.len(), *allows)).is_none_or(|(_, allows)| *allows)
    }
}

/// A prefix match, in which `*` is any text and `$` at the end is the end.
fn matches_path(pattern: &str, path: &str) -> bool {
    let whole = match pattern.strip_suffix('$') {
        Some(pattern) => pattern.to_owned(),
        None => format!("{pattern}*"),
    };
    WildcardPattern::new(&whole).matches(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_and_the_longest_rule_decide() {
        let text = "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private # hidden\nAllow: /private/open\n\
                    Disallow: /*.pdf$\nCrawl-delay: 5\n";
        let file = RobotsFile::parse(text, "toolgate");
        for (path, allowed) in [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a.pdf", false),
            ("/a.pdf?x", true),
        ] {
            assert_eq!(file.allows(path), allowed, "{path}");
        }
        let own = RobotsFile::parse(
            &format!("{text}\nUser-agent: x\nUser-agent: Toolgate\nDisallow: /me\n"),
            "toolgate",
        );
        assert!(own.allows("/private") && !own.allows("/me"));
        assert!(RobotsFile::default().allows("/x") && !RobotsFile::forbid_all().allows("/x"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,400}", path in "/.{0,60}") {
            let _ = RobotsFile::parse(&text, "toolgate").allows(&path);
        }
    }
}
