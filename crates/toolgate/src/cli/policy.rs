//! `toolgate policy`: lints the rules in force, formats them, runs test cases, and imports rules of other products.

use super::context::CliContext;
use super::mcp::find_server_problems;
use super::output::{CliOutput, paint, style};
use super::policy_fmt::{POLICY_FMT_HELP, PolicyFmtArgs, run_policy_fmt};
use super::policy_import::{IMPORT_HELP, ImportFrom, import_rules};
use super::policy_test::{POLICY_TEST_HELP, PolicyTestArgs, run_policy_test};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::settings::{LoadedSettings, SettingsProblem, lint_settings};
use toolgate_policy::ProblemSeverity;
use toolgate_proto::format_count;

/// Arguments of `toolgate policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// The commands of `toolgate policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Report every problem of the settings and rules in force: misspelled names, rules that never match, that others
    /// shadow, or that match more or less than they seem to
    Lint,
    /// Compare the rules with the verdicts that Markdown files expect
    #[command(after_help = POLICY_TEST_HELP)]
    Test(PolicyTestArgs),
    /// Give the rules of settings files one spelling, one on each line, none twice
    #[command(after_help = POLICY_FMT_HELP)]
    Fmt(PolicyFmtArgs),
    /// Convert the rules of another product to settings, and report where their meaning differs
    #[command(after_help = IMPORT_HELP)]
    Import {
        /// The product
        from: ImportFrom,
        /// Its policy file
        file: String,
    },
}

/// Runs `lint`, `test`, `fmt` or `import`.
pub(crate) fn run(
    context: &CliContext,
    args: &PolicyArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        PolicyCommand::Lint => lint(context, out),
        PolicyCommand::Test(args) => run_policy_test(context, args, out),
        PolicyCommand::Fmt(args) => run_policy_fmt(context, args, out),
        PolicyCommand::Import { from, file } => import_rules(context, *from, file, out),
    }
}

/// Prints every problem of the settings and rules in force. Notes do not fail the command; warnings do, because the rule
/// has no effect or not the one it seems to have.
pub(super) fn lint(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder_without_settings().build()?;
    let mut count = 0;
    let mut problems =
        lint_settings(&context.settings_options()?, &toolgate.gate().registered_names(), |policy| {
            policy.layers.push(context.command_line_rules());
            let lengths = policy.layers.iter().map(|it| it.allow.len() + it.ask.len() + it.deny.len());
            count = lengths.sum();
        });
    let settings = LoadedSettings::load(&context.settings_options()?).unwrap_or_default();
    problems.extend(find_server_problems(context, &settings).into_iter().map(describe_server_problem));
    if context.global.json {
        out.print_line(&json!({ "rules": count, "problems": problems }).to_string())?;
    } else {
        for problem in &problems {
            out.print_line(&render_problem(problem))?;
        }
        let rules = format_count(count as u64, "rule", "rules");
        let problems = format_count(problems.len() as u64, "problem", "problems");
        out.print_line(&format!("{rules}, {problems}"))?;
    }
    let failing = problems.iter().any(|problem| problem.weight >= ProblemSeverity::Warning);
    Ok(if failing { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

/// A problem of a list of servers, which names its file.
fn describe_server_problem(text: String) -> SettingsProblem {
    let (file, message) = text.split_once(": ").unwrap_or(("mcpServers", &text));
    let fix = "calls of its tools are refused until it is corrected";
    SettingsProblem::new(file, ProblemSeverity::Warning, message, fix)
}

/// A problem with its severity.
pub(super) fn render_problem(problem: &SettingsProblem) -> String {
    let (style, word) = match problem.weight {
        ProblemSeverity::Note => (style::FAINT, "note   "),
        ProblemSeverity::Warning => (style::ASK, "warning"),
        ProblemSeverity::Fatal => (style::BAD, "fatal  "),
    };
    format!("{}  {}", paint(style, word), escape_invisible(&problem.to_string()))
}
