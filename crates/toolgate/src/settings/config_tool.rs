//! `Config`: the tool by which a model reads a setting, or changes one that it may change.
//!
//! A change is an edit of a settings file: policy judges it as such, and a settings file is protected, so the user is
//! asked whatever rules and modes allow. It goes to the narrowest file that has an effect: the project's local settings
//! if the project is trusted, else the user's. Comments and formatting of the file are kept.

use super::load::{SettingSource, SettingsOptions, check_text};
use super::merge::{insert_at, value_at};
use super::model_access::{ModelAccess, changeable_keys, known_keys, model_access};
use super::node::SettingsNode;
use super::schema::{check as check_schema, settings_check_schema};
use super::trust::{TrustStatus, TrustStore};
use super::{EffectiveValue, LoadedSettings};
use crate::settings_reloader::{ActiveSettings, SettingsReloader};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};
use std::sync::Arc;
use toolgate_files::{ChangeProblem, FileProblem, GrantedFiles, LockedFile, run_blocking};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_policy::{Layer, find_intended_name};
use toolgate_proto::json::JsonLimits;
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Refusal, WriteKind};
use toolgate_tools::unified_diff;

/// Lines of the diff that the user is shown.
const MAX_DIFF_LINES: usize = 100;

/// Reads and changes settings.
pub(crate) struct ConfigTool {
    /// The settings in force, and where their files are; none in a gate that judges calls and runs none.
    pub(crate) settings: Option<Arc<SettingsReloader>>,
}

/// Input of [`ConfigTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigInput {
    /// The key, such as `shell.onTimeout`.
    setting: String,
    /// The new value; leave it out to read.
    value: Option<ConfigValue>,
}

/// A value that a setting can get.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ConfigValue {
    Switch(bool),
    Number(Number),
    Text(String),
}

impl ConfigValue {
    /// As JSON. A whole number that a model writes as `8000.0` is an integer.
    fn to_json(&self) -> Value {
        match self {
            Self::Switch(on) => Value::Bool(*on),
            Self::Text(text) => Value::String(text.clone()),
            Self::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() == 0.0 && (0.0..9e15).contains(&float) => {
                    // INVARIANT: a whole number in this range prints as an integer.
                    serde_json::from_str(&format!("{float:.0}")).unwrap_or_else(|_| json!(float))
                }
                _ => Value::Number(number.clone()),
            },
        }
    }
}

impl ConfigTool {
    /// Where the files of the settings are. The tool is offered only where settings are read.
    fn options(&self) -> Result<&SettingsOptions, Refusal> {
        let options = self.settings.as_ref().and_then(|settings| settings.settings_options());
        options.ok_or_else(|| Refusal::new(Code::Config, "this program reads no settings files"))
    }

    /// The settings in force.
    fn active(&self) -> ActiveSettings {
        self.settings.as_ref().map(|settings| settings.active()).unwrap_or_default()
    }

    /// The file that a change goes to.
    fn target_file(&self) -> Result<AbsPath, Refusal> {
        let options = self.options()?;
        let is_trusted = self.active().settings.trust_status == TrustStatus::Trusted;
        if is_trusted && options.includes(SettingSource::Local) {
            let root = toolgate_files::resolve(&options.root).real;
            return Ok(root.join(".toolgate").join("settings.local.json"));
        }
        match (&options.config_dir, options.includes(SettingSource::User)) {
            (Some(dir), true) => Ok(dir.join("settings.json")),
            _ => Err(Refusal::new(Code::Config, "no settings file that is read here can be changed")
                .hint("trust the project, or read the user's settings")),
        }
    }

    /// Refuses a change that a stronger file would hide.
    fn check_changeable(&self, setting: &str) -> Result<AbsPath, Refusal> {
        let settings = self.active().settings;
        let in_force = find_values(&settings, setting, None).into_iter().next();
        if let Some(EffectiveValue { layer: layer @ (Layer::Managed | Layer::Cli), file, .. }) = in_force {
            let by = match (layer, file) {
                (Layer::Managed, _) => "managed settings".to_owned(),
                (_, Some(file)) => format!("`{file}`"),
                (_, None) => "the option --settings".to_owned(),
            };
            let reason = format!("`{setting}` is set by {by}, and cannot be changed here");
            return Err(Refusal::new(Code::Config, reason).hint("work with the value as it is"));
        }
        self.target_file()
    }

    /// The value in force, with where it comes from.
    fn read(&self, setting: &str) -> Output {
        let active = self.active();
        // A mode that the files do not give is that of the command line or of the session.
        let mode = Some(active.policy.mode).filter(|mode| active.settings.policy(None).mode != *mode);
        let values = find_values(&active.settings, setting, mode);
        let value = join_values(setting, &values);
        let from = values.first().map(|first| match (&first.file, first.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => first.layer.to_string(),
        });
        let text = match &from {
            Some(from) => format!("{setting} = {value} ({from})"),
            None => format!("{setting} is not set; the default applies"),
        };
        Output::text(text).structured(json!({
            "success": true, "operation": "get", "setting": setting, "value": value, "source": from,
        }))
    }
}

impl Tool for ConfigTool {
    type Input = ConfigInput;

    fn spec(&self) -> ToolSpec {
        let keys: Vec<&str> = changeable_keys().collect();
        let mut spec = ToolSpec::new(
            "Config",
            format!(
                "Returns a setting of toolgate, or changes one if `value` is given. Only these can be changed, and the \
                 user is asked each time: {}.",
                keys.join(", ")
            ),
        )
        .with_group("config")
        .with_destructive(false)
        .with_idempotent(true);
        spec.title = "Read or change a setting".to_owned();
        spec.input_examples = vec![
            json!({ "setting": "permissions.defaultMode" }),
            json!({ "setting": "bashOutputMaxChars", "value": 60_000 }),
        ];
        spec
    }

    /// Refuses what no approval could make possible: an unknown key, a key that models may not see or change, a value
    /// that the schema does not accept.
    fn check(&self, input: &ConfigInput) -> Result<(), Refusal> {
        let setting = input.setting.as_str();
        let refuse = |reason: String| Refusal::new(Code::Config, reason);
        let changeable = || format!("can be changed: {}", changeable_keys().collect::<Vec<_>>().join(", "));
        let Some(access) = model_access(setting) else {
            let refusal = refuse(format!("there is no setting `{setting}`"));
            return Err(match find_intended_name(setting, known_keys()) {
                Some(near) => refusal.hint(format!("did you mean `{near}`?")),
                None => refusal.hint(changeable()),
            });
        };
        match (access, &input.value) {
            (ModelAccess::Withheld, _) => {
                Err(refuse(format!("`{setting}` is not shown to models, because it can contain credentials"))
                    .hint("ask the user"))
            }
            (ModelAccess::Change | ModelAccess::Read, None) => Ok(()),
            (ModelAccess::Read, Some(_)) => {
                Err(refuse(format!("only the user can change `{setting}`")).hint(changeable()))
            }
            (ModelAccess::Change, Some(value)) => check_value(setting, &value.to_json()),
        }
    }

    /// Declares a change as an edit of the settings file, so that rules for that file apply, and it is protected.
    fn intent(&self, input: &ConfigInput, _: &CallContext) -> Intent {
        let setting = &input.setting;
        let Some(value) = &input.value else { return Intent::none(format!("read the setting `{setting}`")) };
        let effect = match self.target_file() {
            Ok(path) => Effect::Write { path, kind: WriteKind::Put },
            Err(_) => Effect::State { name: "settings".to_owned() },
        };
        Intent::new(format!("set `{setting}` to {}", value.to_json()), [effect])
    }

    async fn guard(&self, input: &ConfigInput, _: &CallContext) -> Result<(), Refusal> {
        match input.value {
            Some(_) => self.check_changeable(&input.setting).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Shows the change of the file.
    async fn preview(
        &self,
        input: &ConfigInput,
        _: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let Some(value) = &input.value else { return Ok(None) };
        let path = self.check_changeable(&input.setting)?;
        let (files, setting, value, file) =
            (files.clone(), input.setting.clone(), value.to_json(), path.clone());
        let diff = run_blocking(move || {
            let before = match files.read(&file, max_file_bytes()) {
                Ok(snapshot) => Some(to_text(&file, snapshot.bytes)?),
                Err(FileProblem::Missing) => None,
                Err(problem) => return Err(unusable_file(&file, &problem.to_string())),
            };
            let after = edit_setting(&file, before.as_deref().unwrap_or_default(), &setting, &value)?;
            let old = before.as_ref().map(String::as_bytes);
            Ok(unified_diff(&file.to_string(), old, Some(after.as_bytes()), MAX_DIFF_LINES))
        });
        diff.await.map_err(|problem| unusable_file(&path, &problem.to_string()))?.map(Some)
    }

    async fn run(&self, input: ConfigInput, cleared: Cleared) -> CallResult {
        let Some(value) = &input.value else { return Ok(self.read(&input.setting)) };
        let path = self.check_changeable(&input.setting)?;
        let options = self.options()?.clone();
        let (setting, value, file) = (input.setting.clone(), value.to_json(), path.clone());
        let written = cleared.files().change_file(&path, move |locked| {
            write_setting(locked, &file, &setting, &value, &options).map(|previous| (previous, value))
        });
        let written = written.await.map_err(|problem| unusable_file(&path, &problem.to_string()))?;
        let (previous, value) = written?;
        let setting = &input.setting;
        Ok(Output::text(format!("{setting} = {value} in {path}; it counts from the next call on"))
            .structured(json!({
                "success": true, "operation": "set", "setting": setting, "previousValue": previous,
                "newValue": value, "file": path,
            })))
    }
}

/// Writes a value into a settings file, and returns the one that the file had before.
fn write_setting(
    locked: &LockedFile,
    file: &AbsPath,
    setting: &str,
    value: &Value,
    options: &SettingsOptions,
) -> Result<Value, Refusal> {
    let root = toolgate_files::resolve(&options.root).real;
    // A project must not redirect the write with a symlink. The user's own file may be one, into a repository of theirs.
    if file.is_under(&root) && file != locked.real_path() {
        return Err(unusable_file(file, "its path contains a symlink"));
    }
    let snapshot =
        locked.read(max_file_bytes()).map_err(|problem| unusable_file(file, &problem.to_string()))?;
    let before = snapshot.as_ref().map(|snapshot| to_text(file, snapshot.bytes.clone())).transpose()?;
    let text = edit_setting(file, before.as_deref().unwrap_or_default(), setting, value)?;
    locked.put(snapshot.as_ref(), text.as_bytes()).map_err(|problem| match problem {
        ChangeProblem::InvalidContent(problems) => unusable_file(file, &problems.join("; ")),
        ChangeProblem::Changed => unusable_file(file, "another program changed it during this call"),
        ChangeProblem::Unrecorded(reason) => {
            unusable_file(file, &format!("the change could not be recorded for undo: {reason}"))
        }
        ChangeProblem::File(problem) => unusable_file(file, &problem.to_string()),
    })?;
    if let Some(dir) = &options.state_dir {
        // A trusted project stays trusted: the change is one that the user approved, of a key that grants nothing.
        let update = TrustStore::in_dir(dir).update_after_own_write(&root, file, before.as_deref(), &text);
        update.map_err(|error| {
            let reason = format!("`{file}` was written, but trust was not updated: {}", error.message);
            Refusal::new(Code::Config, reason).hint("ask the user to run `toolgate trust add`")
        })?;
    }
    let path: Vec<String> = setting.split('.').map(str::to_owned).collect();
    let old = before.and_then(|text| SettingsNode::parse(&text).ok()).map(|node| node.value());
    Ok(old.as_ref().and_then(|old| value_at(old, &path)).cloned().unwrap_or(Value::Null))
}

/// Checks a value against the schema of settings.
fn check_value(setting: &str, value: &Value) -> Result<(), Refusal> {
    let mut object = Map::new();
    let path: Vec<String> = setting.split('.').map(str::to_owned).collect();
    insert_at(&mut object, &path, value.clone());
    let invalid = |reason: String| Refusal::new(Code::BadArgument, reason);
    let node =
        SettingsNode::parse(&Value::Object(object).to_string()).map_err(|error| invalid(error.message))?;
    match check_schema(&node, settings_check_schema()).wrong.into_iter().next() {
        Some((_, problem)) => Err(invalid(problem)),
        None => Ok(()),
    }
}

/// The text of a settings file with another value of one key. Comments, order and formatting of the rest are kept.
fn edit_setting(file: &AbsPath, text: &str, setting: &str, value: &Value) -> Result<String, Refusal> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    check_text(&file.to_string(), text).map_err(|error| unusable_file(file, &error.message))?;
    let unparsable = |problem: String| unusable_file(file, &problem);
    let before = SettingsNode::parse(text).map_err(|error| unparsable(error.message))?.value();
    let tree =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| unparsable(error.to_string()))?;
    let (sections, name) =
        setting.rsplit_once('.').map_or((None, setting), |(above, name)| (Some(above), name));
    let mut object = tree.object_value_or_set();
    for section in sections.into_iter().flat_map(|sections| sections.split('.')) {
        object = object.object_value_or_set(section);
    }
    let input = match value {
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(unusable_file(file, "the value is not text, a number or a switch"));
        }
    };
    match object.get(name) {
        Some(property) => property.set_value(input),
        None => {
            object.ensure_multiline();
            object.append(name, input);
        }
    }
    let text = tree.to_string();
    // Parse the result: an edit that loses or changes anything else must not be written.
    let after = SettingsNode::parse(&text).map_err(|error| unparsable(error.message))?.value();
    let mut expected = before.as_object().cloned().unwrap_or_default();
    let path: Vec<String> = setting.split('.').map(str::to_owned).collect();
    insert_at(&mut expected, &path, value.clone());
    match after == Value::Object(expected) {
        true => Ok(text),
        false => Err(unusable_file(file, "the value cannot be set without changing other parts of it")),
    }
}

/// The values of a key, or of the keys below it, that have an effect.
fn find_values(
    settings: &LoadedSettings,
    setting: &str,
    mode: Option<toolgate_proto::Mode>,
) -> Vec<EffectiveValue> {
    let mut values = settings.effective_values(mode);
    let is_meant =
        |key: &str| key.strip_prefix(setting).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    values.retain(|value| value.inactive_reason.is_none() && is_meant(&value.key));
    values
}

/// One value for a scalar, a list for a list, an object for a key that has keys of its own.
fn join_values(setting: &str, values: &[EffectiveValue]) -> Value {
    let is_list = || {
        let schema = setting.split('.').try_fold(settings_check_schema(), |schema, name| {
            schema.get("properties").and_then(|keys| keys.get(name))
        });
        schema.is_some_and(|schema| schema.get("items").is_some())
    };
    let nested = values.iter().any(|value| value.key != setting);
    if nested {
        let below =
            |value: &EffectiveValue| value.key.get(setting.len() + 1..).unwrap_or_default().to_owned();
        return Value::Object(values.iter().map(|value| (below(value), value.value.clone())).collect());
    }
    match values {
        _ if is_list() || values.len() > 1 => values.iter().map(|value| value.value.clone()).collect(),
        [only] => only.value.clone(),
        _ => Value::Null,
    }
}

/// The largest settings file that is read.
fn max_file_bytes() -> u64 {
    JsonLimits::SETTINGS.bytes as u64
}

/// The bytes of a file as text.
fn to_text(file: &AbsPath, bytes: impl Into<Vec<u8>>) -> Result<String, Refusal> {
    String::from_utf8(bytes.into()).map_err(|_| unusable_file(file, "it is not UTF-8 text"))
}

/// The refusal for a settings file that cannot be changed.
fn unusable_file(file: &AbsPath, problem: &str) -> Refusal {
    Refusal::new(Code::Config, format!("`{file}` was not changed: {problem}"))
        .hint("leave the setting to the user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_keeps_comments_and_everything_else() {
        let file = AbsPath::new("/project/.toolgate/settings.local.json").unwrap();
        let text =
            "{\n  // why\n  \"permissions\": { \"deny\": [\"Read(.env)\"] },\n  \"model\": \"a\",\n}\n";
        let edit = |text: &str, key: &str, value: Value| edit_setting(&file, text, key, &value).unwrap();
        let changed = edit(text, "model", json!("b"));
        assert_eq!(changed, text.replace("\"a\"", "\"b\""));
        let added = edit(&changed, "shell.onTimeout", json!("background"));
        assert!(added.contains("// why") && added.contains("\"onTimeout\": \"background\""), "{added}");
        assert!(edit("", "bashOutputMaxChars", json!(8000)).contains("\"bashOutputMaxChars\": 8000"));
        assert!(edit_setting(&file, "{ \"permissions\": 1 }", "model", &json!("b")).is_err());
        assert!(edit_setting(&file, "{", "model", &json!("b")).is_err());
    }

    #[test]
    fn a_value_must_fit_the_schema() {
        assert!(check_value("shell.onTimeout", &json!("stop")).is_ok());
        assert!(check_value("shell.onTimeout", &json!("later")).unwrap_err().reason.contains("onTimeout"));
        assert!(check_value("bashOutputMaxChars", &json!(1)).is_err());
        assert!(check_value("bashOutputMaxChars", &json!("8000")).is_err());
        assert_eq!(ConfigValue::Number(Number::from_f64(8000.0).unwrap()).to_json(), json!(8000));
    }
}
