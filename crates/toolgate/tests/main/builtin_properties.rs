//! Properties of every built-in tool of both toolsets, over inputs that are generated from the tools' own schemas.
//!
//! The inputs are valid by the schema and absurd otherwise; paths and commands are chosen so that nothing outside the
//! test's own directory is touched.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallOptions, CancellationToken, Code,
    DefinitionFormat, Effect, FnTool, Hook, HookAnswer, HookCall, HookEvent, HookFailure, Output,
    OutputBlock, ShellConfig, Tool, ToolCall, ToolDefinition, ToolIdentity, ToolSpec, Toolgate,
    ToolgateBuilder, Toolset,
};

/// How long a cancelled call may take to end before the test fails and names it.
const MAX_STOP_WAIT: Duration = Duration::from_secs(100);

/// Inputs for each tool.
const CASES: usize = 100;

/// A generator of numbers that gives the same ones in every run, so that a failure can be repeated.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % bound.max(1)
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len());
        &items[at]
    }
}

/// A project with some files.
pub(super) struct PropertyProject {
    _dir: tempfile::TempDir,
    pub(super) root: PathBuf,
}

impl PropertyProject {
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

    fn builder(&self, toolset: Toolset) -> ToolgateBuilder {
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())]);
        let mut shell = ShellConfig::default();
        shell.environment = environment;
        Toolgate::builder(&self.root).toolset(toolset).tool_group("all").shell_config(shell)
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
struct AgreeingApprover;

impl Approver for AgreeingApprover {
    fn name(&self) -> &str {
        "yes"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// The fields that name a file or a directory.
const PATH_FIELDS: &[&str] =
    &["file_path", "path", "notebook_path", "filePath", "dir_path", "directory", "cwd"];

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
pub(super) fn for_each_case(check: impl FnMut(&PropertyProject, &Toolgate, &ToolDefinition, &Value)) {
    for_each_case_of(|builder| builder, check);
}

/// The same, with more in the builder.
fn for_each_case_of(
    extend: impl Fn(ToolgateBuilder) -> ToolgateBuilder,
    mut check: impl FnMut(&PropertyProject, &Toolgate, &ToolDefinition, &Value),
) {
    for toolset in [Toolset::Claude, Toolset::Plain] {
        let project = PropertyProject::new();
        let toolgate = extend(project.builder(toolset).approver(AgreeingApprover)).build().unwrap();
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

/// What a definition must say: description, names of the fields, and which of them are required.
type DefinedTool = (String, BTreeSet<String>, BTreeSet<String>);

fn fields_of(schema: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let required = schema["required"].as_array().into_iter().flatten();
    (names.collect(), required.map(|name| name.as_str().unwrap().to_owned()).collect())
}

/// The definitions in a format, by name. A name that is there twice fails.
fn defined_tools(rendered: &Value, format: DefinitionFormat) -> BTreeMap<String, DefinedTool> {
    let list = match format {
        DefinitionFormat::Gemini => &rendered[0]["functionDeclarations"],
        DefinitionFormat::Mcp | DefinitionFormat::Json => &rendered["tools"],
        _ => rendered,
    };
    let mut tools = BTreeMap::new();
    for one in list.as_array().unwrap() {
        let one = one.get("function").unwrap_or(one);
        let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| one.get(key));
        let (fields, required) = fields_of(schema.unwrap());
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        let earlier = tools.insert(text("name"), (text("description"), fields, required));
        assert!(earlier.is_none(), "{format}: {} is there twice", text("name"));
    }
    tools
}

/// A tool of the embedding program with generated fields, and what its definition must say.
fn generate_tool(index: usize, numbers: &mut Numbers) -> (String, DefinedTool, impl Tool + use<>) {
    let name = format!("own_tool_{index}");
    let description = format!("Does {} things.", numbers.below(1_000));
    let fields: BTreeSet<String> = (0..numbers.below(4)).map(|field| format!("field_{field}")).collect();
    let required: BTreeSet<String> = fields.iter().filter(|_| numbers.below(2) == 0).cloned().collect();
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.clone(), json!({ "type": "string" }))).collect();
    let spec = ToolSpec::new(name.as_str(), description.as_str()).with_input_schema(json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    }));
    let tool = FnTool::new(spec, |_: Map<String, Value>, _| async { Ok(Output::text("done")) });
    (name, (description, fields, required), tool)
}

/// Property 5: of any set of tools, each has exactly one definition with its name, description and parameters. The sets
/// are chosen here: some built-in tools, and some of the embedding program.
#[test]
fn property_5_schema_generation_completeness_of_all_tools() {
    let mut numbers = Numbers(0x5EED_0000_0000_0005);
    for toolset in [Toolset::Claude, Toolset::Plain] {
        let project = PropertyProject::new();
        let all = project.builder(toolset).build().unwrap().tools();
        for case in 0..CASES {
            let mut expected: BTreeMap<String, DefinedTool> = BTreeMap::new();
            // The first case has all of them.
            for tool in all.iter().filter(|_| case == 0 || numbers.below(3) > 0) {
                let (fields, required) = fields_of(&tool.input_schema);
                expected.insert(tool.name.to_string(), (tool.description.clone(), fields, required));
            }
            let mut builder = project.builder(toolset);
            for index in 0..numbers.below(4) {
                let (name, defined, tool) = generate_tool(index, &mut numbers);
                builder = builder.tool(tool);
                expected.insert(name, defined);
            }
            let toolgate = builder.only_tools(expected.keys().cloned()).build().unwrap();
            for format in DefinitionFormat::ALL {
                let defined = defined_tools(&toolgate.definitions(format), format);
                assert_eq!(defined, expected, "{toolset:?}, {format}");
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
        assert_eq!(
            intended.intent.locations().len(),
            intended.intent.effects.len(),
            "{}: {input}",
            tool.name
        );
        assert!(
            intended.intent.locations().iter().all(|place| !place.trim().is_empty()),
            "{}: {input}",
            tool.name
        );
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
fn properties_49_and_57_every_result_has_content_and_every_error_a_type_and_a_message() {
    let runtime = runtime();
    for_each_case(|_, toolgate, tool, input| {
        let options = CallOptions::default().with_timeout(Some(Duration::from_secs(120)));
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
                // For the model and for the user; an image has no text, and a command may print nothing.
                let has_image = output.content.iter().any(|block| matches!(block, OutputBlock::Image { .. }));
                let is_silent = has_image || input.get("command").is_some();
                assert!(is_silent || !output.display_text().trim().is_empty(), "{}: {input}", tool.name);
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

/// A hook before each call that cancels the call, and then lets it go on or never answers.
#[derive(Default)]
struct CancellingHook {
    next: Mutex<(CancellationToken, bool)>,
}

impl Hook for CancellingHook {
    fn name(&self) -> &str {
        "cancelling"
    }

    fn handles(&self, event: HookEvent, _: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse
    }

    fn handle_call<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let (cancel, answers) = self.next.lock().unwrap().clone();
        cancel.cancel();
        if answers {
            Box::pin(std::future::ready(Ok(HookAnswer::empty())))
        } else {
            Box::pin(std::future::pending())
        }
    }
}

/// Property 48 again, with a signal that comes when the call is under way: before the tool runs, so that no change is
/// excused by its having begun.
#[test]
fn property_48_a_call_of_any_tool_that_is_cancelled_under_way_stops_and_changes_nothing() {
    let runtime = runtime();
    let hook = Arc::new(CancellingHook::default());
    let mut numbers = Numbers(0x5EED_0000_0000_0048);
    for_each_case_of(
        |builder| builder.hook(Arc::clone(&hook)),
        |project, toolgate, tool, input| {
            let before = project.files();
            let cancel = CancellationToken::new();
            *hook.next.lock().unwrap() = (cancel.clone(), numbers.below(2) == 0);
            let options = CallOptions::default().with_cancel(cancel.clone());
            let call = ToolCall::new("c", tool.name.clone(), input.to_string());
            let calling = toolgate.call_with_options(call, options);
            let ended = runtime.block_on(async { tokio::time::timeout(MAX_STOP_WAIT, calling).await });
            let Ok(outcome) = ended else { panic!("{}: {input} does not stop", tool.name) };
            assert!(cancel.is_cancelled(), "{}: the hook did not run", tool.name);
            assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled, "{}: {input}", tool.name);
            assert!(project.files() == before, "{}: {input}", tool.name);
        },
    );
}
