//! What a tool is.
//!
//! A tool *describes*: its input, what a call would do, what must hold before it runs, and how it runs.
//! It never decides whether it may run, and it cannot be run without a [`Cleared`].

use crate::call_context::CallContext;
use crate::permit::Cleared;
use crate::truncate::KeptPart;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use toolgate_files::GrantedFiles;
use toolgate_proto::{CallResult, Intent, Output, Refusal, ToolConcurrency, ToolHints, ToolName};

/// A tool, with its input as a type.
///
/// Implement this for a built-in or SDK tool; for a closure use [`crate::FnTool`].
/// The schema that models see is generated from [`Tool::Input`] and its doc comments; fields that are not in it are
/// refused.
pub trait Tool: Send + Sync + 'static {
    /// What a call carries. Put `#[serde(deny_unknown_fields)]` on it and a doc comment on each field.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The tool's name, description and properties. Asked once, at registration.
    fn spec(&self) -> ToolSpec;

    /// A description that depends on where the tool is offered, in place of the spec's.
    fn describe(&self, context: &CallContext) -> Option<String> {
        let _ = context;
        None
    }

    /// Whether the tool is available in a session now. One that is not is neither listed nor found, like a tool that is
    /// hidden. Asked for each call and each list, so it must be quick.
    fn is_enabled(&self, context: &CallContext) -> bool {
        let _ = context;
        true
    }

    /// Checks that a schema cannot express (two fields that exclude each other).
    fn check(&self, input: &Self::Input) -> Result<(), Refusal> {
        let _ = input;
        Ok(())
    }

    /// Whether the user must be asked about a call with this input, whatever rules, hooks and modes allow. For every call
    /// of a tool there is [`ToolSpec::requires_interaction`].
    fn requires_user(&self, input: &Self::Input) -> bool {
        let _ = input;
        false
    }

    /// What the call would do. Total: an input that passed the schema always has an intent.
    /// A path that is not named here cannot be reached in [`Tool::run`].
    fn intent(&self, input: &Self::Input, context: &CallContext) -> Intent;

    /// What must hold before it runs, apart from permission (read before edit).
    fn guard(
        &self,
        input: &Self::Input,
        context: &CallContext,
    ) -> impl Future<Output = Result<(), Refusal>> + Send {
        let _ = (input, context);
        std::future::ready(Ok(()))
    }

    /// Does it. `cleared` is the proof that the gate let this one call through, and gives the tool its file access.
    fn run(&self, input: Self::Input, cleared: Cleared) -> impl Future<Output = CallResult> + Send;

    /// What would change, as a unified diff, for the user who is asked. Called after the guard, and only when a
    /// question is about to be asked; `files` can be read and not changed.
    ///
    /// A call that is certain to be refused later should be refused here, so that no user is asked about it. The
    /// refusal reaches the model before an approver has agreed: it must not tell more about a file than the session has read.
    fn preview(
        &self,
        input: &Self::Input,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> impl Future<Output = Result<Option<String>, Refusal>> + Send {
        let _ = (input, context, files);
        std::future::ready(Ok(None))
    }

    /// How the user is shown the use, in place of the intent's summary.
    fn render_use(&self, input: &Self::Input) -> Option<String> {
        let _ = input;
        None
    }

    /// How the user is shown the result, in place of the output's display text.
    fn render_result(&self, output: &Output) -> Option<String> {
        let _ = output;
        None
    }
}

/// The properties of a tool. Start with [`ToolSpec::new`], and set what differs by the `with_…` methods.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name a model calls it by.
    pub name: ToolName,
    /// The name for people.
    pub title: String,
    /// What it does and when to use it.
    pub description: String,
    /// Older names that are still taken.
    pub aliases: Vec<String>,
    /// The rule name of its family, if another than its own: the plain `shell` answers to `Bash`.
    pub family: Option<String>,
    /// The group of optional tools that it belongs to. Its definition is sent to a model only where the group is
    /// loaded; it can be called by name all the same. `None` means that it is always listed.
    pub group: Option<String>,
    /// It changes nothing.
    pub read_only: bool,
    /// It may remove or overwrite.
    pub destructive: bool,
    /// Calling it twice is as calling it once.
    pub idempotent: bool,
    /// It reaches beyond this machine.
    pub open_world: bool,
    /// The user must be asked on every call.
    pub requires_interaction: bool,
    /// Whether it may overlap with other calls.
    pub concurrency: ToolConcurrency,
    /// Most characters of a result before it is put into a file.
    pub max_result_chars: usize,
    /// Most lines of it; absent means any number.
    pub max_result_lines: Option<usize>,
    /// Which part of a result that is too large is kept.
    pub keep: KeptPart,
    /// How long a run may take where the caller sets no deadline.
    pub timeout: Option<Duration>,
    /// Inputs that show how it is meant.
    pub input_examples: Vec<Value>,
    /// The field that the short form of a call fills ([`Gate::build_short_form`](crate::Gate::build_short_form)), where it
    /// is not the first required one: a rule for `Grep` is about its `path`.
    pub main_field: Option<String>,
    /// The field for what follows the first blank in the short form: in `Skill deploy now` the arguments.
    pub rest_field: Option<String>,
    /// The input's schema where it is known only at run time (a tool of another server).
    pub input_schema: Option<Value>,
    /// The structured output's schema.
    pub output_schema: Option<Value>,
}

impl ToolSpec {
    /// A spec with careful defaults: not read-only, destructive, by effect, 30 000 characters.
    pub fn new(name: impl Into<ToolName>, description: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            title: name.as_str().to_owned(),
            name,
            description: description.into(),
            aliases: Vec::new(),
            family: None,
            group: None,
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: false,
            requires_interaction: false,
            concurrency: ToolConcurrency::ByEffect,
            max_result_chars: 30_000,
            max_result_lines: None,
            keep: KeptPart::default(),
            timeout: None,
            input_examples: Vec::new(),
            main_field: None,
            rest_field: None,
            input_schema: None,
            output_schema: None,
        }
    }

    /// The same for a tool that changes nothing.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self.destructive = false;
        self.idempotent = true;
        self
    }

    /// Sets the name for people.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds an older name that is still taken.
    pub fn with_alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Sets the rule name of the family.
    pub fn with_family(mut self, family: impl Into<String>) -> Self {
        self.family = Some(family.into());
        self
    }

    /// Puts it into a group of optional tools.
    pub fn with_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets whether it may remove or overwrite.
    pub fn with_destructive(mut self, destructive: bool) -> Self {
        self.destructive = destructive;
        self
    }

    /// Sets whether calling it twice is as calling it once.
    pub fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets whether it reaches beyond this machine.
    pub fn with_open_world(mut self, open_world: bool) -> Self {
        self.open_world = open_world;
        self
    }

    /// Sets whether the user must be asked on every call.
    pub fn with_required_interaction(mut self, required_interaction: bool) -> Self {
        self.requires_interaction = required_interaction;
        self
    }

    /// Sets whether it may overlap with other calls.
    pub fn with_concurrency(mut self, concurrency: ToolConcurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets the limit in characters beyond which a result is put into a file.
    pub fn with_max_result_chars(mut self, max_result_chars: usize) -> Self {
        self.max_result_chars = max_result_chars;
        self
    }

    /// Sets the limit in lines.
    pub fn with_max_result_lines(mut self, max_result_lines: usize) -> Self {
        self.max_result_lines = Some(max_result_lines);
        self
    }

    /// Sets which part of a result that is too large is kept.
    pub fn with_kept_part(mut self, kept_part: KeptPart) -> Self {
        self.keep = kept_part;
        self
    }

    /// Sets how long a run may take where the caller sets no deadline.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds an input that shows how the tool is meant.
    pub fn with_input_example(mut self, input_example: Value) -> Self {
        self.input_examples.push(input_example);
        self
    }

    /// Sets the field that the short form of a call fills.
    pub fn with_main_field(mut self, main_field: impl Into<String>) -> Self {
        self.main_field = Some(main_field.into());
        self
    }

    /// Sets the field for what follows the first blank in the short form.
    pub fn with_rest_field(mut self, rest_field: impl Into<String>) -> Self {
        self.rest_field = Some(rest_field.into());
        self
    }

    /// Sets the schema of the input, where it is known only at run time.
    pub fn with_input_schema(mut self, input_schema: Value) -> Self {
        self.input_schema = Some(input_schema);
        self
    }

    /// Sets the schema of the structured output.
    pub fn with_output_schema(mut self, output_schema: Value) -> Self {
        self.output_schema = Some(output_schema);
        self
    }

    /// MCP's hints, which follow from the rest.
    pub fn annotations(&self) -> ToolHints {
        let mut hints = ToolHints::default();
        hints.read_only_hint = self.read_only;
        hints.destructive_hint = self.destructive;
        hints.idempotent_hint = self.idempotent;
        hints.open_world_hint = self.open_world;
        hints
    }
}

/// A tool whose input type is erased, as the registry keeps it.
pub(crate) trait ErasedTool: Send + Sync {
    /// See [`Tool::is_enabled`].
    fn is_enabled(&self, context: &CallContext) -> bool;
    /// See [`Tool::describe`].
    fn describe(&self, context: &CallContext) -> Option<String>;
    /// Parses a valid input with the type of the tool.
    fn parse_input(&self, input: &Map<String, Value>) -> Result<Box<dyn ErasedCall>, Refusal>;
    /// See [`Tool::render_result`].
    fn render_result(&self, output: &Output) -> Option<String>;
}

/// An input that was read, together with its tool.
pub(crate) trait ErasedCall: Send + Sync {
    fn requires_user(&self) -> bool;
    fn intent(&self, context: &CallContext) -> Intent;
    fn preview<'a>(
        &'a self,
        context: &'a CallContext,
        files: &'a GrantedFiles,
    ) -> BoxFuture<'a, Result<Option<String>, Refusal>>;
    fn render_use(&self) -> Option<String>;
    fn guard<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<(), Refusal>>;
    fn run(self: Box<Self>, cleared: Cleared) -> BoxFuture<'static, CallResult>;
}

pub(crate) struct TypedTool<T>(pub(crate) Arc<T>);

impl<T: Tool> ErasedTool for TypedTool<T> {
    fn is_enabled(&self, context: &CallContext) -> bool {
        self.0.is_enabled(context)
    }

    fn describe(&self, context: &CallContext) -> Option<String> {
        self.0.describe(context)
    }

    fn parse_input(&self, input: &Map<String, Value>) -> Result<Box<dyn ErasedCall>, Refusal> {
        let input: T::Input = crate::schema::read_typed(input)?;
        self.0.check(&input)?;
        Ok(Box::new(TypedCall { tool: Arc::clone(&self.0), input }))
    }

    fn render_result(&self, output: &Output) -> Option<String> {
        self.0.render_result(output)
    }
}

struct TypedCall<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

impl<T: Tool> ErasedCall for TypedCall<T> {
    fn requires_user(&self) -> bool {
        self.tool.requires_user(&self.input)
    }

    fn intent(&self, context: &CallContext) -> Intent {
        self.tool.intent(&self.input, context)
    }

    fn preview<'a>(
        &'a self,
        context: &'a CallContext,
        files: &'a GrantedFiles,
    ) -> BoxFuture<'a, Result<Option<String>, Refusal>> {
        Box::pin(self.tool.preview(&self.input, context, files))
    }

    fn render_use(&self) -> Option<String> {
        self.tool.render_use(&self.input)
    }

    fn guard<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(self.tool.guard(&self.input, context))
    }

    fn run(self: Box<Self>, cleared: Cleared) -> BoxFuture<'static, CallResult> {
        Box::pin(async move { self.tool.run(self.input, cleared).await })
    }
}
