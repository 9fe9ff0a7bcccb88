//! `toolgate demo`: a scripted model makes calls in a temporary workspace, and the story is told.

use super::args::DemoArgs;
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::ledger::verify_in;
use toolgate::render::escape_invisible;
use toolgate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOutcome, ConflictHandling, Effect, FnTool, Intent,
    Journal, JournalLimits, LedgerSink, Output, ShellConfig, ToolSpec, Toolgate, Toolset, UndoFilter,
    UndoSelector, WriteKind,
};
use toolgate_files::{AppendLog, ScratchDirectory};
use toolgate_proto::OutcomeRecord;
use toolgate_tools::unified_diff;

/// A build that does more than build: the sandbox stops the rest, and the result says so.
const BUILD_SCRIPT: &str =
    "print('building')\nopen('built.txt', 'w').write('done')\nopen('../outside/planted.txt', 'w')\n";

/// One thing that the scripted model does.
struct DemoStep {
    narration: &'static str,
    tool: &'static str,
    input: String,
}

/// Input of the demo's own tool.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeployInput {
    /// Where to.
    target: String,
}

pub(crate) fn run(world: &CliContext, args: &DemoArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut scratch = ScratchDirectory::new(&world.ambient.temp_dir, "toolgate-demo-")?;
    if args.keep {
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
        .deny("launch_missiles")
        .deny("Bash(rm *)")
        .shell_config(ShellConfig {
            environment: world.ambient.env.clone(),
            temp_dir: scratch.dir().clone(),
            ..ShellConfig::default()
        })
        .tool(deploy_tool())
        .tool(FnTool::new(
            ToolSpec::new("launch_missiles", "Launches missiles."),
            |_: DeployInput, _| async { Ok(Output::text("this never runs")) },
        ))
        .approver(DemoApprover)
        .sink(ledger)
        .journal(Arc::clone(&journal))
        .build()?;

    let project = scratch.dir().join("project");
    out.print_line("A model works in a temporary project. Everything it asks for crosses one boundary:")?;
    out.print_line(&paint(
        style::FAINT,
        "resolve → validate → screen → judge → settle → guard → run → finish → one record",
    ))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (index, scene) in demo_steps(&project.to_string()).into_iter().enumerate() {
        out.print_line(&format!("\n{} {}", paint(style::BOLD, &format!("{}.", index + 1)), scene.narration))?;
        out.print_line(&format!("   {} {}", paint(style::BOLD, scene.tool), escape_invisible(&scene.input)))?;
        let closed = runtime.block_on(toolgate.call(format!("call_{}", index + 1), scene.tool, &scene.input));
        print_call(&closed, out)?;
        out.flush()?;
    }
    undo_edit(&journal, out)?;
    print_summary(&ledger_dir, out)?;
    if args.keep {
        out.print_line(&format!("\nThe workspace is kept in {}", scratch.dir()))?;
    }
    Ok(CliExitCode::Ok)
}

fn demo_steps(project: &str) -> Vec<DemoStep> {
    let text = |value: Value| value.to_string();
    vec![
        DemoStep {
            narration: "It looks around. Reading inside the workspace is free.",
            tool: "ls",
            input: text(json!({ "recursive": true })),
        },
        DemoStep {
            narration: "It reads a file.",
            tool: "Read",
            input: text(json!({ "file_path": format!("{project}/src/main.rs") })),
        },
        DemoStep {
            narration: "It misspells a field, and is told which one it meant.",
            tool: "Read",
            input: text(json!({ "file_pth": "README.md" })),
        },
        DemoStep {
            narration: "It says one thing twice. A lenient reader would pick one; this one refuses.",
            tool: "Read",
            input: format!(r#"{{"file_path": "{project}/README.md", "file_p\u0061th": "/etc/shadow"}}"#),
        },
        DemoStep {
            narration: "It reads through a link that leads out of the workspace. Policy judges the real file, so a person \
                   is asked, and says no.",
            tool: "Read",
            input: text(json!({ "file_path": format!("{project}/notes") })),
        },
        DemoStep {
            narration: "It edits the file that it has read. A person is asked, and says yes.",
            tool: "Edit",
            input: text(json!({
                "file_path": format!("{project}/src/main.rs"),
                "old_string": "hello",
                "new_string": "goodbye",
            })),
        },
        DemoStep {
            narration: "It runs a command that only reads. Every part of the line is judged, and nobody need be asked.",
            tool: "Bash",
            input: text(json!({ "command": "grep -rn goodbye . | wc -l" })),
        },
        DemoStep {
            narration: "It runs a command that no rule speaks of. A person is asked, and says yes; it runs in a sandbox.",
            tool: "Bash",
            input: text(json!({ "command": "python3 build.py", "description": "Build the project" })),
        },
        DemoStep {
            narration: "It hides a command that a rule denies inside another one.",
            tool: "Bash",
            input: text(json!({ "command": "echo \"$(rm -rf src)\"" })),
        },
        DemoStep {
            narration: "It wants to deploy to staging. No rule speaks of that, so a person is asked, and says yes.",
            tool: "deploy",
            input: text(json!({ "target": "staging" })),
        },
        DemoStep {
            narration: "It tries a tool that a rule denies. The tool is not shown, so it is not there.",
            tool: "launch_missiles",
            input: text(json!({ "target": "moon" })),
        },
        DemoStep {
            narration: "It makes up a tool, and is told what there is.",
            tool: "Raed",
            input: text(json!({ "file_path": "x" })),
        },
    ]
}

fn deploy_tool() -> impl toolgate::Tool {
    FnTool::new(ToolSpec::new("deploy", "Deploys the project."), |input: DeployInput, _| async move {
        Ok(Output::text(format!("deployed to {}", input.target)))
    })
    .intent(|input, scene| {
        let marker = scene.absolute_path(&format!("deployed/{}", input.target));
        Intent::new(
            format!("deploy to {}", input.target),
            [Effect::Write { path: marker, kind: WriteKind::Put }],
        )
    })
}

/// The scripted person: agrees to an edit in the project and to deploy to staging, and to nothing else.
struct DemoApprover;

impl Approver for DemoApprover {
    fn name(&self) -> &str {
        "the person"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let asked = request.question.description.as_str();
        let yes = asked == "deploy to staging"
            || asked.starts_with("edit ")
            || asked.starts_with("run `python3 build.py`");
        let answer = if yes {
            ApprovalAnswer::Once
        } else {
            ApprovalAnswer::No { message: Some("that file is none of your business".to_owned()) }
        };
        Box::pin(std::future::ready(answer))
    }
}

fn print_call(closed: &CallOutcome, out: &mut CliOutput) -> Result<(), CliError> {
    let record = &closed.record;
    if let Some(judged) = &record.judged {
        let word = paint(style::verdict(&judged.verdict), &judged.verdict);
        out.print_line(&format!("   judged {word}: {}", escape_invisible(&judged.reason.to_string())))?;
    }
    if let Some(approval) = &record.approval {
        out.print_line(&format!("   {} answered: {}", approval.by, paint(style::BOLD, &approval.answer)))?;
    }
    match (&closed.result, &record.outcome) {
        (Ok(output), _) => {
            for line in escape_invisible(&output.model_text()).lines().take(6) {
                out.print_line(&format!("   {} {line}", paint(style::GOOD, "│")))?;
            }
        }
        (Err(refusal), OutcomeRecord::Refused { stage, .. }) => {
            let partial = refusal.partial.as_deref().map(Output::model_text).unwrap_or_default();
            // The end says what became of it.
            let lines: Vec<String> = escape_invisible(&partial).lines().map(str::to_owned).collect();
            for line in lines.iter().skip(lines.len().saturating_sub(3)) {
                out.print_line(&format!("   {} {line}", paint(style::BAD, "│")))?;
            }
            out.print_line(&format!(
                "   {} at {stage}: {} [{} {}]",
                paint(style::BAD, "refused"),
                escape_invisible(&refusal.reason),
                refusal.code,
                refusal.kind
            ))?;
            out.print_line(&format!("   hint: {}", escape_invisible(&refusal.hint)))?;
        }
        (Err(refusal), OutcomeRecord::Done { .. }) => {
            out.print_line(&escape_invisible(&refusal.to_string()))?
        }
    }
    Ok(())
}

/// The person thinks better of the edit.
fn undo_edit(journal: &Journal, out: &mut CliOutput) -> Result<(), CliError> {
    out.print_line("\nThe person thinks better of that edit, as `toolgate undo` would:")?;
    let moved = journal
        .undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
        .map_err(|problem| CliError::Usage(problem.to_string()))?;
    for restore in &moved.restores {
        let diff =
            unified_diff(&restore.path.to_string(), restore.now.as_deref(), restore.then.as_deref(), 12);
        for line in escape_invisible(&diff).lines() {
            out.print_line(&format!("   {} {line}", paint(style::GOOD, "│")))?;
        }
    }
    Ok(())
}

fn print_summary(ledger_dir: &toolgate::AbsPath, out: &mut CliOutput) -> Result<(), CliError> {
    let (report, _) = verify_in(ledger_dir, &AppendLog::default_anchor_dir(ledger_dir))?;
    let held = if report.is_intact() { "holds" } else { "is broken" };
    out.print_line(&format!(
        "\n{} calls, {} records; the chain of the ledger {held}.",
        report.records, report.records
    ))?;
    out.print_line("Try it yourself: `toolgate tools`, `toolgate call ls`, `toolgate check Read '{\"file_path\":\"/etc/hosts\"}'`, `toolgate log`.")?;
    Ok(())
}
