//! Properties of every built-in tool of both toolsets, over inputs that are generated from the tools' own schemas.
//!
//! The inputs are valid by the schema and absurd otherwise; paths and commands are chosen so that nothing outside the
//! test's own directory is touched.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toolgate::policy::RawBook;
use toolgate::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallOptions, CancellationToken, Code,
    DefinitionFormat, Effect, Layer, RawPolicy, RiskLevel, ShellConfig, ToolCall, ToolDefinition, Toolgate,
    Toolset, Verdict,
};

/// Inputs for each tool.
const CASES: usize = 100;

/// A generator of numbers that gives the same ones in every run, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % bound.max(1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len());
        &items[at]
    }
}

/// A project with some files.
struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(root.join("sub/b.rs"), "fn main() {}\n").unwrap();
        std::fs::write(root.join("n.ipynb"), r#"{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}"#)
            .unwrap();
        Self { _dir: dir, root }
    }

    fn toolgate(&self, toolset: Toolset, approver: Option<Yes>) -> Toolgate {
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())]);
        let shell = ShellConfig { environment, ..ShellConfig::default() };
        let builder = Toolgate::builder(&self.root).toolset(toolset).tool_group("all").shell_config(shell);
        match approver {
            Some(approver) => builder.approver(approver).build().unwrap(),
            None => builder.build().unwrap(),
        }
    }

    /// The content of every file.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut pending = vec![self.root.clone()];
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                if entry.path().is_dir() {
                    pending.push(entry.path());
                } else {
                    files.insert(entry.path(), std::fs::read(entry.path()).unwrap());
                }
            }
        }
        files
    }
}

/// Approves everything but answers no question of a tool.
struct Yes;

impl Approver for Yes {
    fn name(&self) -> &str {
        "yes"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// The fields that name a file or a directory.
const PATH_FIELDS: &[&str] = &["file_path", "path", "notebook_path", "filePath", "dir_path", "directory"];

/// A value that fits a schema. `field` is its name, by which paths, commands and addresses are chosen.
fn generate(schema: &Value, field: &str, root: &Path, numbers: &mut Numbers) -> Value {
    if PATH_FIELDS.contains(&field) {
        let name =
            *numbers.pick(&["a.txt", "sub/b.rs", "sub", "missing.txt", "sub/new.txt", "n.ipynb", ".env"]);
        return json!(root.join(name));
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return numbers.pick(values).clone();
    }
    if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let real: Vec<Value> = options.iter().filter(|option| option["type"] != "null").cloned().collect();
        return generate(numbers.pick(&real), field, root, numbers);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or(Value::Null),
        kind => kind.clone(),
    };
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let length =
        |name: &str| schema.get(name).and_then(Value::as_u64).map(|value| usize::try_from(value).unwrap());
    match kind.as_str().unwrap_or("string") {
        "boolean" => json!(numbers.below(2) == 0),
        "integer" | "number" => {
            let least = bound("minimum").unwrap_or(0);
            let most = bound("maximum").unwrap_or(least + 50).min(least + 50);
            json!(least + i64::try_from(numbers.below(usize::try_from(most - least + 1).unwrap())).unwrap())
        }
        "array" => {
            let least = length("minItems").unwrap_or(0);
            let most = length("maxItems").unwrap_or(least + 3).min(least + 3);
            let count = least + numbers.below(most - least + 1);
            Value::Array((0..count).map(|_| generate(&schema["items"], "", root, numbers)).collect())
        }
        "object" => generate_object(schema, root, numbers),
        _ => {
            let words: &[&str] = match field {
                "command" => {
                    &["echo one", "cat a.txt", "false", "ls sub", "echo x > out.txt", "printf 'a\\nb\\n'"]
                }
                "url" => &["http://127.0.0.1:9/", "https://localhost/", "ftp://example.invalid/", "nonsense"],
                "pattern" => &["one", "*.rs", "fn", "[", "**/*"],
                "cron" => &["*/5 * * * *", "0 9 * * 1-5", "30 14 28 2 *", "61 * * * *"],
                _ => &["one", "two", "a b", "ä", "plain", "x"],
            };
            let mut text = (*numbers.pick(words)).to_owned();
            while text.chars().count() < length("minLength").unwrap_or(0) {
                text.push('x');
            }
            json!(text)
        }
    }
}

/// An object with all required fields and some of the others.
fn generate_object(schema: &Value, root: &Path, numbers: &mut Numbers) -> Value {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut object = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(name.as_str()) || numbers.below(3) == 0 {
            object.insert(name.clone(), generate(field, name, root, numbers));
        }
    }
    Value::Object(object)
}

/// Visits every built-in tool of both toolsets with inputs that pass its schema and its own checks.
fn for_each_case(mut check: impl FnMut(&Project, &Toolgate, &ToolDefinition, &Value)) {
    for toolset in [Toolset::Claude, Toolset::Plain] {
        let project = Project::new();
        let toolgate = project.toolgate(toolset, Some(Yes));
        let mut numbers = Numbers(0x5EED_0000_0000_0001);
        let tools = toolgate.tools();
        assert!(tools.len() >= 12, "{toolset:?}");
        for tool in &tools {
            let mut made = 0;
            for _ in 0..CASES * 200 {
                let input = generate_object(&tool.input_schema, &project.root, &mut numbers);
                let call = ToolCall::new("c", tool.name.clone(), input.to_string());
                match toolgate.gate().derive_intent(toolgate.session(), &call) {
                    Ok(_) => {
                        check(&project, &toolgate, tool, &input);
                        made += 1;
                    }
                    // A combination that the tool itself refuses, such as two fields that exclude each other.
                    Err(refusal) => {
                        let own = [Code::BadArgument, Code::Memory, Code::Todo];
                        assert!(own.contains(&refusal.code), "{}: {input}: {refusal}", tool.name);
                    }
                }
                if made == CASES {
                    break;
                }
            }
            assert!(made == CASES, "{}: only {made} of the generated inputs are valid", tool.name);
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn property_5_schema_generation_completeness_of_all_tools() {
    for toolset in [Toolset::Claude, Toolset::Plain] {
        let project = Project::new();
        let toolgate = project.toolgate(toolset, None);
        let registered: BTreeSet<String> =
            toolgate.gate().registered_tools().iter().map(|tool| tool.name.to_string()).collect();
        let tools = toolgate.tools();
        for (format, pointer) in [
            (DefinitionFormat::Openai, "/function"),
            (DefinitionFormat::Anthropic, ""),
            (DefinitionFormat::Mcp, ""),
        ] {
            let rendered = toolgate.definitions(format);
            let list = rendered.get("tools").unwrap_or(&rendered).as_array().unwrap();
            let names: Vec<String> = list
                .iter()
                .map(|one| one.pointer(pointer).unwrap()["name"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "each once");
            assert!(names.iter().all(|name| registered.contains(name)));
            assert_eq!(names.len(), tools.len());
            for (one, tool) in list.iter().zip(&tools) {
                let one = one.pointer(pointer).unwrap();
                assert_eq!(one["name"], tool.name.as_str());
                assert_eq!(one["description"], tool.description.as_str(), "{}", tool.name);
                let schema = ["parameters", "input_schema", "inputSchema"]
                    .iter()
                    .find_map(|key| one.get(key))
                    .unwrap();
                let fields = |schema: &Value| -> BTreeSet<String> {
                    schema["properties"]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.clone())
                        .collect()
                };
                assert_eq!(fields(schema), fields(&tool.input_schema), "{}", tool.name);
            }
        }
    }
}

#[test]
fn properties_45_and_46_every_call_is_described_and_located() {
    for_each_case(|_, toolgate, tool, input| {
        let call = ToolCall::new("c", tool.name.clone(), input.to_string());
        let intended = toolgate.gate().derive_intent(toolgate.session(), &call).unwrap();
        assert!(!intended.intent.summary.trim().is_empty(), "{}: {input}", tool.name);
        // Each path that the input names is among the effects, or contains what they name.
        let named = PATH_FIELDS.iter().filter_map(|field| input.get(field)).filter_map(Value::as_str);
        for path in named {
            let is_located = intended.intent.effects.iter().any(|effect| match effect {
                Effect::Read { path: read, .. } => read.as_path().starts_with(path),
                Effect::Write { path: written, .. } => written.as_path().starts_with(path),
                Effect::Exec { command } => command.cwd.as_path().starts_with(path),
                _ => false,
            });
            assert!(is_located, "{}: {input}: {:?}", tool.name, intended.intent.effects);
        }
        if let Some(command) = input.get("command").and_then(Value::as_str) {
            let runs =
                |effect: &Effect| matches!(effect, Effect::Exec { command: line } if line.text == command);
            assert!(intended.intent.effects.iter().any(runs), "{}: {input}", tool.name);
        }
    });
}

#[test]
fn properties_33_36_and_47_every_call_is_allowed_denied_or_asked_about_with_a_risk() {
    for_each_case(|project, toolgate, tool, input| {
        let judged = toolgate.check(tool.name.clone(), &input.to_string()).unwrap();
        let is_allowed = match &judged.verdict {
            Verdict::Allow(_) => true,
            Verdict::Ask(question) => {
                assert!(!question.description.trim().is_empty(), "{}: {input}", tool.name);
                let levels = [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High, RiskLevel::Critical];
                assert!(levels.contains(&question.risk), "{}: {input}", tool.name);
                false
            }
            Verdict::Deny(_) => false,
        };
        // The oracle: no rule and no mode lets a file be written, and a secret is never read, without a question.
        let names_secret = input.to_string().contains("/.env");
        let effects = toolgate
            .gate()
            .derive_intent(toolgate.session(), &ToolCall::new("c", tool.name.clone(), input.to_string()))
            .unwrap()
            .intent
            .effects;
        let writes = effects.iter().any(|effect| matches!(effect, Effect::Write { .. }));
        let reads = !effects.is_empty() && effects.iter().all(|effect| matches!(effect, Effect::Read { .. }));
        if writes {
            assert!(!is_allowed, "{}: {input}", tool.name);
        }
        if reads && !names_secret && !input.to_string().contains("[\"") {
            assert!(is_allowed, "{}: {input}: {:?} in {}", tool.name, judged.verdict, project.root.display());
        }
    });
}

#[test]
fn properties_49_and_57_every_result_has_content_and_every_error_a_type_and_a_message() {
    let runtime = runtime();
    for_each_case(|_, toolgate, tool, input| {
        let options = CallOptions::default().with_timeout(Some(std::time::Duration::from_secs(120)));
        // Each call starts a browser: the tests of the browser have them.
        if tool.name.as_str().eq_ignore_ascii_case("screenshot") {
            return;
        }
        // Commands that go on after their call, and waits for the user, are not the subject.
        let mut input = input.clone();
        if let Some(fields) = input.as_object_mut() {
            for field in ["run_in_background", "timeout", "screenshot", "render"] {
                fields.remove(field);
            }
        }
        let call = ToolCall::new("c", tool.name.clone(), input.to_string());
        let outcome = runtime.block_on(toolgate.call_with_options(call, options));
        match &outcome.result {
            Ok(output) => {
                assert!(!output.content.is_empty(), "{}: {input}", tool.name);
            }
            Err(refusal) => {
                assert!(
                    !refusal.kind.is_empty() && !refusal.reason.trim().is_empty(),
                    "{}: {input}",
                    tool.name
                );
                assert!(
                    refusal.kind.chars().all(|c| c.is_ascii_alphanumeric()),
                    "{}: {}",
                    tool.name,
                    refusal.kind
                );
                assert_ne!(refusal.code, Code::ToolPanicked, "{}: {input}: {refusal}", tool.name);
                assert_ne!(refusal.code, Code::Internal, "{}: {input}: {refusal}", tool.name);
            }
        }
        let message = toolgate::render::openai_message(&outcome.record.call, &outcome.result);
        let text =
            message["content"].as_str().map(str::to_owned).unwrap_or_else(|| message["content"].to_string());
        assert_eq!(outcome.result.is_err(), text.starts_with("Error: "), "{}: {input}: {text}", tool.name);
    });
}

#[test]
fn property_48_a_cancelled_call_of_any_tool_stops_and_changes_nothing() {
    let runtime = runtime();
    for_each_case(|project, toolgate, tool, input| {
        let before = project.files();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let options = CallOptions::default().with_cancel(cancel);
        let call = ToolCall::new("c", tool.name.clone(), input.to_string());
        let outcome = runtime.block_on(toolgate.call_with_options(call, options));
        assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled, "{}: {input}", tool.name);
        assert!(project.files() == before, "{}: {input}", tool.name);
    });
}

/// A condition of a policy book's rule about this input, and whether it holds. Where it holds is decided here, by how it
/// was made, and not by a comparison.
fn make_condition(input: &Map<String, Value>, numbers: &mut Numbers) -> (Value, bool) {
    let names: Vec<&String> = input.keys().collect();
    if names.is_empty() || numbers.below(6) == 0 {
        let operator = *numbers.pick(&["equals", "contains", "startsWith", "matches"]);
        return (json!({ "param": "no_such_field", "operator": operator, "value": "" }), false);
    }
    let name = numbers.pick(&names).as_str();
    let text = match &input[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let chars: Vec<char> = text.chars().collect();
    let start = numbers.below(chars.len() + 1);
    let end = start + numbers.below(chars.len() - start + 1);
    let slice = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    // A character that no generated input has.
    let foreign = |text: String| format!("{text}\u{1F980}");
    let (operator, value, holds) = match numbers.below(10) {
        0 => ("equals", json!(text), true),
        1 => ("equals", json!(foreign(text.clone())), false),
        2 => ("contains", json!(slice(start, end)), true),
        3 => ("contains", json!(foreign(slice(start, end))), false),
        4 => ("startsWith", json!(slice(0, end)), true),
        5 => ("startsWith", json!(foreign(slice(0, end))), false),
        6 => ("matches", json!(format!("^{}$", regex::escape(&text))), true),
        7 => ("matches", json!(format!("{}$.", regex::escape(&text))), false),
        // Of several values one is enough.
        8 => ("equals", json!([foreign(String::new()), text]), true),
        _ => ("contains", json!([foreign(String::new()), foreign(slice(start, end))]), false),
    };
    (json!({ "param": name, "operator": operator, "value": value }), holds)
}

/// Property 35: a rule with conditions applies if and only if all of them hold. The oracle is the verdict without the
/// rule: a rule that applies denies, and one that does not changes nothing.
#[test]
fn property_35_policy_condition_evaluation_of_every_tool() {
    let mut numbers = Numbers(0x5EED_0000_0000_0035);
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for_each_case(|_, toolgate, tool, input| {
        let fields = input.as_object().unwrap();
        let judge = |book: Option<Value>| {
            let mut policy = RawPolicy::default();
            policy.books.extend(book.map(|book| RawBook::new(Layer::User, book)));
            assert!(toolgate.gate().set_policy(policy).is_empty());
            toolgate.check(tool.name.clone(), &input.to_string()).unwrap().verdict
        };
        let count = numbers.below(4);
        let (conditions, hold): (Vec<Value>, Vec<bool>) =
            (0..count).map(|_| make_condition(fields, &mut numbers)).unzip();
        let applies = hold.iter().all(|holds| *holds);
        let named = *numbers.pick(&[tool.name.as_str(), "*"]);
        let rule =
            json!({ "tool": named, "action": "deny", "message": "by the rule", "conditions": conditions });
        let before = judge(None);
        let after = judge(Some(json!({ "rules": [rule] })));
        match &after {
            Verdict::Deny(reason) if applies => assert!(reason.text.contains("by the rule"), "{reason:?}"),
            _ => {
                assert!(!applies, "{}: {input}: {rule} did not apply", tool.name);
                assert_eq!(after, before, "{}: {input}: {rule} applied", tool.name);
            }
        }
        // A rule for another tool never applies.
        let other = json!({ "tool": "NoSuchTool", "action": "deny" });
        assert_eq!(judge(Some(json!({ "rules": [other] }))), before, "{}", tool.name);
        counts.entry(tool.name.to_string()).or_default()[usize::from(applies)] += 1;
    });
    // Both outcomes were seen often for every tool.
    for (tool, [not, applied]) in &counts {
        assert!(*not >= 20 && *applied >= 20, "{tool}: {applied} applied, {not} did not");
    }
}
