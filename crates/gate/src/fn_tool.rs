//! A tool made of a closure.

use crate::call_context::CallContext;
use crate::permit::Cleared;
use crate::tool::{Tool, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use toolgate_proto::{CallResult, Effect, Intent};

type EnabledFn = Box<dyn Fn(&CallContext) -> bool + Send + Sync>;
type IntentFn<I> = Box<dyn Fn(&I, &CallContext) -> Intent + Send + Sync>;

/// A tool made of a spec and an async closure, for programs that embed the library.
///
/// Without [`FnTool::intent`] a tool whose spec is [`ToolSpec::read_only`] has no effects, and passes without a rule.
/// The effects of any other are unknown, so policy asks before each call unless a rule allows it.
/// A tool that changes nothing by some of its inputs only returns [`Intent::none`] for those.
///
/// ```
/// use toolgate_gate::{FnTool, ToolSpec};
/// use toolgate_proto::Output;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct SeededRandom {
///     /// How many sides each die has.
///     sides: u32,
/// }
///
/// let spec = ToolSpec::new("roll", "Rolls a die.").read_only();
/// let tool = FnTool::new(spec, |input: SeededRandom, _cleared| async move {
///     Ok(Output::text(format!("{}", 1 + 7 % input.sides.max(1))))
/// });
/// ```
pub struct FnTool<I, F> {
    spec: ToolSpec,
    run: F,
    intent: Option<IntentFn<I>>,
    enabled: Option<EnabledFn>,
    input: PhantomData<fn(I)>,
}

impl<I, F, Fut> FnTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, Cleared) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = CallResult> + Send,
{
    /// A tool that runs the closure.
    pub fn new(spec: ToolSpec, run: F) -> Self {
        Self { spec, run, intent: None, enabled: None, input: PhantomData }
    }

    /// The same, available only where this is true.
    pub fn enabled(mut self, enabled: impl Fn(&CallContext) -> bool + Send + Sync + 'static) -> Self {
        self.enabled = Some(Box::new(enabled));
        self
    }

    /// The same, able to say what a call would do.
    pub fn intent(mut self, intent: impl Fn(&I, &CallContext) -> Intent + Send + Sync + 'static) -> Self {
        self.intent = Some(Box::new(intent));
        self
    }
}

impl<I, F, Fut> Tool for FnTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, Cleared) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = CallResult> + Send,
{
    type Input = I;

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_enabled(&self, context: &CallContext) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| enabled(context))
    }

    fn intent(&self, input: &I, context: &CallContext) -> Intent {
        match &self.intent {
            Some(intent) => intent(input, context),
            None if self.spec.read_only => Intent::none(format!("use {}", self.spec.name)),
            None => Intent::new(format!("use {}", self.spec.name), [Effect::Opaque]),
        }
    }

    fn run(&self, input: I, cleared: Cleared) -> impl Future<Output = CallResult> + Send {
        (self.run)(input, cleared)
    }
}
