//! `toolgate demo`: a scripted agent makes calls in a temporary project, and every step is explained.
//!
//! The calls go through a real gate with a real sandbox; only the agent and the user are scripted. The demo uses
//! its own ledger and journal in the temporary directory, so it leaves nothing in the state directory of the user.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::ledger::verify_in;
use toolgate::render::escape_invisible;
use toolgate::{
    AbsPath, ApprovalAnswer, ApprovalRequest, Approver, CallOutcome, ConflictHandling, Effect, FnTool,
    Intent, Journal, JournalLimits, LedgerSink, Output, Refusal, ShellConfig, ToolSpec, Toolgate, Toolset,
    UndoFilter, UndoSelector, WriteKind,
};
use toolgate_files::{AppendLog, ScratchDirectory};
use toolgate_tools::unified_diff;

/// A build script that also writes outside the project, which the sandbox stops.
const BUILD_SCRIPT: &str =
    "print('building')\nopen('built.txt', 'w').write('done')\nopen('../outside/planted.txt', 'w')\n";

/// How many lines of a result the demo displays.
const MAX_RESULT_LINES: usize = 6;
/// How many lines of the output of a failed command the demo displays; the last ones, which say why it failed.
const MAX_FAILURE_LINES: usize = 3;

/// Arguments of `toolgate demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the temporary project and print its path
    #[arg(long)]
    pub(crate) keep: bool,
}

/// One call of the scripted agent.
struct DemoStep {
    /// What the call shows, for the reader.
    narration: &'static str,
    /// The name that the agent calls, which may not exist.
    tool: &'static str,
    /// The input as the agent writes it, which may be invalid.
    input: String,
}

/// Input of the tools that the demo registers itself.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeployInput {
    /// The environment to act on.
    target: String,
}

/// The temporary project and the toolgate in front of it.
struct DemoProject {
    /// Removed at the end, unless `--keep` is given.
    scratch: ScratchDirectory,
    /// Where the records of the demo are.
    ledger_dir: AbsPath,
    /// The previous contents of changed files, for the undo at the end.
    journal: Arc<Journal>,
    /// The gate that every call of the agent passes through.
    toolgate: Toolgate,
}

/// Makes the calls one by one and prints each with its verdict and result.
pub(crate) fn run(
    context: &CliContext,
    args: &DemoArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let demo = DemoProject::create(context, args.keep)?;
    out.print_line(&paint(
        style::BOLD,
        "An AI agent works in a project. Every tool call passes through toolgate.",
    ))?;
    out.print_line(
        "toolgate finds the tool, validates the input, derives what the call would do, checks that against the\n\
         rules, asks the user if needed, runs the call with no more rights than were granted, and records it.",
    )?;
    out.print_line(&paint(
        style::FAINT,
        "The agent and the user's answers are scripted; everything else is real. `/demo` is a temporary directory.",
    ))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (index, step) in demo_steps(&demo.project().to_string()).into_iter().enumerate() {
        let number = index + 1;
        out.print_line(&format!("\n{} {}", paint(style::BOLD, &format!("{number}.")), step.narration))?;
        demo.print_field(out, "call", &format!("{} {}", step.tool, step.input))?;
        let outcome = runtime.block_on(demo.toolgate.call(format!("call_{number}"), step.tool, &step.input));
        demo.print_outcome(&outcome, out)?;
        out.flush()?;
    }
    demo.undo_edit(out)?;
    demo.print_summary(out)?;
    if args.keep {
        out.print_line(&format!("\nThe temporary directory is kept: {}", demo.scratch.dir()))?;
    }
    Ok(CliExitCode::Ok)
}

/// The calls of the agent, in order.
fn demo_steps(project: &str) -> Vec<DemoStep> {
    let mut steps = file_steps(project);
    steps.extend(command_steps());
    steps
}

/// A step whose input is valid JSON.
fn step(narration: &'static str, tool: &'static str, input: Value) -> DemoStep {
    DemoStep { narration, tool, input: input.to_string() }
}

/// Reading and editing files, with valid and invalid input.
fn file_steps(project: &str) -> Vec<DemoStep> {
    vec![
        step(
            "The agent lists the project. Reading inside the workspace needs no approval.",
            "ls",
            json!({ "recursive": true }),
        ),
        step("It reads a file.", "Read", json!({ "file_path": format!("{project}/src/main.rs") })),
        step(
            "It misspells a field. The error names the field that it probably meant.",
            "Read",
            json!({ "file_pth": "README.md" }),
        ),
        DemoStep {
            narration: "It sends the same key twice, once with an escape. Parsers disagree about which one counts, so \
                        the input is refused.",
            tool: "Read",
            input: format!(r#"{{"file_path": "{project}/README.md", "file_p\u0061th": "/etc/shadow"}}"#),
        },
        step(
            "It reads a symlink that points outside the workspace. The rules apply to the real file, so the user is \
             asked, and says no.",
            "Read",
            json!({ "file_path": format!("{project}/notes") }),
        ),
        step(
            "It edits the file that it has read. Changes need approval; the user allows this one.",
            "Edit",
            json!({
                "file_path": format!("{project}/src/main.rs"),
                "old_string": "hello",
                "new_string": "goodbye",
            }),
        ),
    ]
}

/// Commands, and tools that the application registered.
fn command_steps() -> Vec<DemoStep> {
    vec![
        step(
            "It runs commands that only read. Each command of the line is analysed, and no approval is needed.",
            "Bash",
            json!({ "command": "grep -rn goodbye . | wc -l" }),
        ),
        step(
            "It runs a script that no rule allows. The user approves it, and it runs in a sandbox: the script also \
             tries to write outside the project, and the kernel refuses that.",
            "Bash",
            json!({ "command": "python3 build.py", "description": "Build the project" }),
        ),
        step(
            "It hides a command inside another one. A rule denies `rm`, wherever it stands in the line.",
            "Bash",
            json!({ "command": "echo \"$(rm -rf src)\"" }),
        ),
        step(
            "It calls `deploy`, a tool that the application registered. No rule allows it; the user does.",
            "deploy",
            json!({ "target": "staging" }),
        ),
        step(
            "It calls `drop_database`, which a rule denies by name. Denied tools are hidden from the agent, so the \
             answer is the same as for a tool that does not exist.",
            "drop_database",
            json!({ "target": "production" }),
        ),
        step("It misspells a tool. The error names the nearest one.", "Raed", json!({ "file_path": "x" })),
    ]
}

/// A tool as an application would register it: it declares that it writes a marker file, and policy judges that.
fn deploy_tool() -> impl toolgate::Tool {
    FnTool::new(ToolSpec::new("deploy", "Deploys the project."), |input: DeployInput, _| async move {
        Ok(Output::text(format!("deployed to {}", input.target)))
    })
    .intent(|input, context| {
        let marker = context.absolute_path(&format!("deployed/{}", input.target));
        Intent::new(
            format!("deploy to {}", input.target),
            [Effect::Write { path: marker, kind: WriteKind::Put }],
        )
    })
}

/// The scripted user: allows the edit, the build and the deployment to staging, and nothing else.
struct DemoApprover;

impl Approver for DemoApprover {
    /// Identifies the scripted user in approval records the way a real user appears there.
    fn name(&self) -> &str {
        "the user"
    }

    /// Decides by the description that the gate shows, as a user at a terminal does. Every other request is denied with
    /// a message, so that the demo shows how a denial reaches the model.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let description = request.question.description.as_str();
        let allowed = description == "deploy to staging"
            || description.starts_with("edit ")
            || description.starts_with("run `python3 build.py`");
        let answer = if allowed {
            ApprovalAnswer::Once
        } else {
            ApprovalAnswer::No { message: Some("stay inside the project".to_owned()) }
        };
        Box::pin(std::future::ready(answer))
    }
}

impl DemoProject {
    /// Writes the files of the project and builds the gate with two deny rules.
    fn create(context: &CliContext, keep: bool) -> Result<Self, CliError> {
        let mut scratch = ScratchDirectory::new(&context.ambient.temp_dir, "toolgate-demo-")?;
        if keep {
            scratch.keep();
        }
        scratch.write("project/README.md", "# Demo\n\nA small project.\n")?;
        scratch.write("project/src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n")?;
        scratch.write("project/build.py", BUILD_SCRIPT)?;
        scratch.write("outside/secret.txt", "nothing to see here\n")?;
        scratch.create_symlink("project/notes", "../outside/secret.txt")?;
        let ledger_dir = scratch.dir().join("ledger");
        let ledger = Arc::new(LedgerSink::open(&ledger_dir, u64::MAX)?);
        let journal = Journal::open(scratch.dir(), JournalLimits::default())
            .map_err(|problem| CliError::Usage(problem.to_string()))?;
        let journal = Arc::new(journal);
        let toolgate = Toolgate::builder(scratch.dir().join("project").as_path())
            .toolset(Toolset::Claude)
            .deny("drop_database")
            .deny("Bash(rm *)")
            .shell_config(ShellConfig::new(context.ambient.env.clone(), scratch.dir().clone()))
            .tool(deploy_tool())
            .tool(FnTool::new(
                ToolSpec::new("drop_database", "Drops the database."),
                |_: DeployInput, _| async { Ok(Output::text("this never runs")) },
            ))
            .approver(DemoApprover)
            .sink(ledger)
            .journal(Arc::clone(&journal))
            .build()?;
        Ok(Self { scratch, ledger_dir, journal, toolgate })
    }

    /// The directory that the agent works in.
    fn project(&self) -> AbsPath {
        self.scratch.dir().join("project")
    }

    /// Prints text under a label, with the long name of the temporary directory shortened to `/demo`.
    fn print_field(&self, out: &mut CliOutput, label: &str, text: &str) -> Result<(), CliError> {
        let text = escape_invisible(text).replace(&self.scratch.dir().to_string(), "/demo");
        for (index, line) in text.lines().enumerate() {
            let label = if index == 0 { label } else { "" };
            out.print_line(&format!("   {} {line}", paint(style::FAINT, &format!("{label:9}"))))?;
        }
        Ok(())
    }

    /// Prints the verdict, the answer of the user, and the result or the refusal.
    fn print_outcome(&self, outcome: &CallOutcome, out: &mut CliOutput) -> Result<(), CliError> {
        let record = &outcome.record;
        if let Some(judged) = &record.judged {
            let verdict = paint(style::verdict(&judged.verdict), &judged.verdict);
            // Styled text would be escaped, so the verdict is printed as a part of its own.
            let reason = escape_invisible(&judged.reason.to_string());
            let reason = reason.replace(&self.scratch.dir().to_string(), "/demo");
            out.print_line(&format!("   {} {verdict}: {reason}", paint(style::FAINT, "verdict  ")))?;
        }
        if let Some(approval) = &record.approval {
            self.print_field(out, "approval", &format!("{} answered `{}`", approval.by, approval.answer))?;
        }
        match &outcome.result {
            Ok(output) => {
                let text = output.model_text();
                let lines: Vec<&str> = text.lines().take(MAX_RESULT_LINES).collect();
                self.print_field(out, "result", &lines.join("\n"))?;
            }
            Err(refusal) => {
                let partial = refusal.partial.as_deref().map(Output::model_text).unwrap_or_default();
                let lines: Vec<&str> = partial.lines().collect();
                let tail = lines.get(lines.len().saturating_sub(MAX_FAILURE_LINES)..).unwrap_or_default();
                self.print_field(out, "output", &tail.join("\n"))?;
                let Refusal { code, kind, stage, reason, .. } = refusal;
                let reason = format!("at {stage}: {reason} [{code} {kind}]");
                self.print_field(out, record.outcome.as_str(), &reason)?;
                self.print_field(out, "hint", &refusal.hint)?;
            }
        }
        Ok(())
    }

    /// Undoes the edit, as `toolgate undo` would, and prints the diff.
    fn undo_edit(&self, out: &mut CliOutput) -> Result<(), CliError> {
        out.print_line("\nFinally the user undoes the agent's edit, as `toolgate undo` does:")?;
        let undone = self
            .journal
            .undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
            .map_err(|problem| CliError::Usage(problem.to_string()))?;
        for restore in &undone.restores {
            let (now, then) = (restore.now.as_deref(), restore.then.as_deref());
            self.print_field(out, "undone", &unified_diff(&restore.path.to_string(), now, then, 12))?;
        }
        Ok(())
    }

    /// Verifies the ledger and names the commands to try next.
    fn print_summary(&self, out: &mut CliOutput) -> Result<(), CliError> {
        let (report, _) = verify_in(&self.ledger_dir, &AppendLog::default_anchor_dir(&self.ledger_dir))?;
        let state = if report.is_intact() { "is intact" } else { "is broken" };
        out.print_line(&format!(
            "\n{} calls left {} records, one each; the hash chain that detects tampering {state}.",
            report.records, report.records
        ))?;
        out.print_line("\nTry it in a project of yours:")?;
        for (command, purpose) in [
            ("toolgate tools", "list the tools"),
            ("toolgate call ls", "make a call"),
            (
                "toolgate check Bash '{\"command\":\"git push\"}'",
                "see whether a call would be allowed, and why",
            ),
            ("toolgate log", "see the recorded calls"),
            ("toolgate mcp serve", "serve the tools to an MCP client"),
        ] {
            out.print_line(&format!("  {command:48}  {}", paint(style::FAINT, purpose)))?;
        }
        Ok(())
    }
}
