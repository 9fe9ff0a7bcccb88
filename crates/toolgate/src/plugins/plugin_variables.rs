//! The variables of plugins: `${CLAUDE_PLUGIN_ROOT}`, `${CLAUDE_PLUGIN_DATA}` and `${CLAUDE_PROJECT_DIR}`.

use crate::skills::PluginIdentity;
use serde_json::Value;
use toolgate_proto::AbsPath;

/// What stands before the options of a plugin. toolgate has no values for them.
const OPTION_PREFIX: &str = "${user_config.";

/// The values of the variables for one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginVariables {
    /// Each variable with its value.
    values: Vec<(&'static str, String)>,
}

impl PluginVariables {
    /// The variables of a plugin in a project.
    pub(crate) fn new(plugin: &PluginIdentity, project: &AbsPath) -> Self {
        let data = plugin.data.as_ref().map(|dir| ("CLAUDE_PLUGIN_DATA", dir.to_string()));
        let mut values = vec![
            ("CLAUDE_PLUGIN_ROOT", plugin.root.to_string()),
            ("CLAUDE_PROJECT_DIR", project.to_string()),
        ];
        values.extend(data);
        Self { values }
    }

    /// Fills in the variables in one pass: a value that looks like a variable stays as it is.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let found = self.values.iter().find_map(|(name, value)| {
                let rest = after.strip_prefix(name)?.strip_prefix('}')?;
                Some((value, rest))
            });
            match found {
                Some((value, after)) => {
                    out.push_str(value);
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// The same for every text of a JSON value; names of fields stay.
    #[cfg(feature = "lsp")]
    pub(crate) fn expand_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.expand_value(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// What processes of the plugin get as environment variables. Python must not write compiled files beside the
    /// plugin's, because they would change its content.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let own = self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        own.chain([("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())])
    }
}

/// Why a definition of a hook or server cannot be used, by the texts in it.
pub(crate) fn find_unusable_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.contains(OPTION_PREFIX) => {
            Some("it uses `${user_config.…}`, for which there are no values here".to_owned())
        }
        // The directory of git is not part of the content that is approved.
        Value::String(text) if text.split(['/', '"', '\'', ' ', '=', ':']).any(|part| part == ".git") => {
            Some("it names `.git`, whose content is not approved with the plugin".to_owned())
        }
        Value::Array(items) => items.iter().find_map(find_unusable_text),
        Value::Object(fields) => fields.values().find_map(find_unusable_text),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_once() {
        let root = AbsPath::new("/x/${CLAUDE_PROJECT_DIR}").unwrap();
        let plugin = PluginIdentity { name: "p".to_owned(), root, data: None, approved: None };
        let variables = PluginVariables::new(&plugin, &AbsPath::new("/ws").unwrap());
        for (text, expected) in [
            ("${CLAUDE_PLUGIN_ROOT}/a", "/x/${CLAUDE_PROJECT_DIR}/a"),
            ("${CLAUDE_PROJECT_DIR}${CLAUDE_PROJECT_DIR}", "/ws/ws"),
            ("${CLAUDE_PLUGIN_DATA} ${HOME} ${", "${CLAUDE_PLUGIN_DATA} ${HOME} ${"),
            ("${CLAUDE_PLUGIN_ROOTX}", "${CLAUDE_PLUGIN_ROOTX}"),
        ] {
            assert_eq!(variables.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn options_and_the_directory_of_git_are_refused() {
        for text in ["run ${user_config.key}", "${CLAUDE_PLUGIN_ROOT}/.git/x.sh", "sh '.git/x'"] {
            assert!(find_unusable_text(&serde_json::json!({ "a": [text] })).is_some(), "{text}");
        }
        for text in ["git status", "x.github/y", ".gitignore", "https://h/r.git"] {
            assert_eq!(find_unusable_text(&serde_json::json!(text)), None, "{text}");
        }
    }
}
