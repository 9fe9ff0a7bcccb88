//! The arguments of `toolgate run`, which are also those that agent SDKs give to the program without a command.

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use std::ffi::OsString;
use toolgate::agent::EFFORT_LEVELS;

/// Options that only a run has: where one stands without a command, `run` is meant.
const RUN_OPTIONS: [&str; 4] = ["-p", "--print", "--input-format", "--output-format"];

/// Puts `run` into a command line that has its options and no command: agent SDKs start the program so. `-v` prints the
/// version, as they expect.
pub(crate) fn with_run_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_option = |arg: &OsString| arg.to_str().is_some_and(|arg| arg.starts_with('-'));
    if !args.get(1).is_some_and(is_option) {
        return args;
    }
    if args.len() == 2 && args.get(1).is_some_and(|arg| arg == "-v") {
        args.truncate(1);
        args.push("--version".into());
        return args;
    }
    let names_run = |arg: &OsString| {
        let arg = arg.to_str().unwrap_or_default();
        RUN_OPTIONS.contains(&arg.split('=').next().unwrap_or_default())
    };
    if args.iter().any(names_run) {
        args.insert(1, "run".into());
    }
    args
}

/// What the help shows at its end.
pub(crate) const RUN_HELP: &str = "\
In a pipe, standard input is added to the prompt: `git diff | toolgate run -p 'review this change'`.
The model is found by the environment: ANTHROPIC_API_KEY, or OPENAI_API_KEY, or OPENAI_BASE_URL for any server of \
chat completions, such as http://localhost:11434/v1; TOOLGATE_MODEL_API=anthropic|chat|responses chooses the protocol.
Agent SDKs drive the same command with --input-format stream-json (docs/sdk.md).";

/// Arguments of `toolgate run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RunArgs {
    /// What the agent should do; text from standard input is added to it. At a terminal, without one, a conversation
    /// begins
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Print the answer and end, without asking at the terminal
    #[arg(long, short)]
    pub(crate) print: bool,
    /// Format of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output_format: RunOutputFormat,
    /// Format of standard input: text, or frames of a host program
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) input_format: RunInputFormat,
    /// Pass on the pieces of an answer as they arrive (stream-json)
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    /// Tell of each hook that ran (stream-json)
    #[arg(long)]
    pub(crate) include_hook_events: bool,
    /// Repeat each prompt with its id (stream-json)
    #[arg(long)]
    pub(crate) replay_user_messages: bool,
    /// Accepted for SDKs
    #[arg(long, hide = true)]
    pub(crate) verbose: bool,
    /// The model, or one of the short names sonnet, opus and haiku
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model to use while the first is overloaded
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,
    /// Beta features of the provider, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) betas: Vec<String>,
    /// How much effort the model makes: none, minimal, low, medium, high, xhigh or max; not every model knows each
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(EFFORT_LEVELS), hide_possible_values = true)]
    pub(crate) effort: Option<String>,
    /// Whether the model thinks first: adaptive or disabled
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking: Option<ThinkingArg>,
    /// The most tokens that the model may think
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_thinking_tokens: Option<u64>,
    /// How the model's thinking is returned: summarized or omitted (Messages API)
    #[arg(long, value_name = "HOW", value_parser = ["summarized", "omitted"], hide_possible_values = true)]
    pub(crate) thinking_display: Option<String>,
    /// End a turn after this many requests to the model
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// End the run when it has cost this much, in US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,
    /// A system prompt in place of ours; empty for none
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// A file whose text is the system prompt in place of ours; an empty file for none
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<String>,
    /// Text after the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// The output style, in place of the setting `outputStyle`; `default` for none
    #[arg(long, value_name = "NAME")]
    pub(crate) output_style: Option<String>,
    /// The JSON schema that the output must fit; it is in `structured_output` of the result
    #[arg(long, value_name = "JSON")]
    pub(crate) json_schema: Option<String>,
    /// Types of subagents, as a JSON object: {"NAME": {"description", "prompt", "tools"?, "model"?, "maxTurns"?}}
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,
    /// The type of subagents that the main conversation is: its prompt, tools and model
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Budget in tokens that is announced to the model (Messages API)
    #[arg(long, value_name = "TOKENS")]
    pub(crate) task_budget: Option<u64>,
    /// Attach a file to the first prompt: PATH, PATH:FIRST-LAST for some lines, or mcp:SERVER:URI for a resource of a
    /// server (repeatable)
    #[arg(long = "file", value_name = "SPEC")]
    pub(crate) files: Vec<String>,
    /// Use the tools of the editor that has this directory open
    #[arg(long)]
    pub(crate) ide: bool,
    /// Go on with the last session in this directory
    #[arg(long = "continue", short, conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Go on with the session of this id
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Give the session a new id, and leave the old one as it is
    #[arg(long)]
    pub(crate) fork_session: bool,
    /// Go on from this message of the session
    #[arg(long, value_name = "UUID", requires = "resume")]
    pub(crate) resume_session_at: Option<String>,
    /// The prompt of the turn that --resume-session-at leaves out; refused if it would leave out more than that turn
    #[arg(long, value_name = "UUID", requires = "resume_session_at")]
    pub(crate) resume_drops_turn: Option<String>,
    /// Do not store the session
    #[arg(long)]
    pub(crate) no_session_persistence: bool,
    /// The id of the session, a UUID
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,
    /// Accepted for SDKs: permissions may be skipped if the host asks for it
    #[arg(long, hide = true)]
    pub(crate) allow_dangerously_skip_permissions: bool,
    /// Send each line of the transcript to the host (stream-json)
    #[arg(long)]
    pub(crate) session_mirror: bool,
    /// Accepted for SDKs: nothing begins before `initialize` anyway
    #[arg(long, hide = true)]
    pub(crate) await_initialize: bool,
    /// Write what the agent does to this file, one line an event, without any text of the conversation
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_file: Option<String>,
    /// Write what the agent does to standard error, one line an event, without any text of the conversation; a filter is
    /// accepted for SDKs and has no effect
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "FILTER")]
    pub(crate) debug: Option<Option<String>>,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutputFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object with the result
    Json,
    /// One JSON object a line, as things happen
    StreamJson,
}

/// Format of standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunInputFormat {
    /// Text
    #[default]
    Text,
    /// Frames of a host program
    StreamJson,
}

/// Whether the model thinks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingArg {
    /// As much as it finds useful
    Adaptive,
    /// Not at all
    Disabled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_put_in_where_its_options_stand_without_a_command() {
        for (given, wanted) in [
            ("toolgate", "toolgate"),
            ("toolgate -v", "toolgate --version"),
            ("toolgate --version", "toolgate --version"),
            ("toolgate call ls -p", "toolgate call ls -p"),
            ("toolgate --json tools", "toolgate --json tools"),
            ("toolgate -p hello", "toolgate run -p hello"),
            (
                "toolgate --output-format stream-json --verbose",
                "toolgate run --output-format stream-json --verbose",
            ),
            (
                "toolgate --model=x --input-format=stream-json",
                "toolgate run --model=x --input-format=stream-json",
            ),
        ] {
            let args = given.split(' ').map(OsString::from).collect();
            let wanted: Vec<OsString> = wanted.split(' ').map(OsString::from).collect();
            assert_eq!(with_run_command(args), wanted);
        }
    }
}
