//! `toolgate demo`: a scripted model makes calls in a temporary workspace, and the story is told.

use super::args::DemoArgs;
use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::ledger::verify_in;
use toolgate::render::visible;
use toolgate::{
    Among, Answer, ApprovalRequest, Approver, Closed, Effect, FnTool, How, Intent, Journal, JournalLimits,
    LedgerSink, Output, Spec, Surroundings, Toolgate, Toolset, UndoSelector, WriteKind,
};
use toolgate_os::{AppendLog, Scratch};
use toolgate_proto::Outcome;
use toolgate_tools::unified_diff;

/// A build that does more than build: the sandbox stops the rest, and the result says so.
const BUILD: &str =
    "print('building')\nopen('built.txt', 'w').write('done')\nopen('../outside/planted.txt', 'w')\n";

/// One thing that the scripted model does.
struct Scene {
    says: &'static str,
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

pub(crate) fn run(world: &World, args: &DemoArgs, out: &mut Out) -> Result<Exit, Failure> {
    let mut scratch = Scratch::new(&world.ambient.temp_dir, "toolgate-demo-")?;
    if args.keep {
        scratch.keep();
    }
    scratch.write("project/README.md", "# Demo\n\nA small project.\n")?;
    scratch.write("project/src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n")?;
    scratch.write("project/build.py", BUILD)?;
    scratch.write("outside/secret.txt", "nothing to see here\n")?;
    scratch.link("project/notes", "../outside/secret.txt")?;
    let ledger_dir = scratch.dir().join("ledger");
    let ledger = Arc::new(LedgerSink::open(&ledger_dir, u64::MAX)?);
    let journal = Journal::open(scratch.dir(), JournalLimits::default())
        .map_err(|problem| Failure::Usage(problem.to_string()))?;
    let journal = Arc::new(journal);
    let toolgate = Toolgate::builder(scratch.dir().join("project").as_path())
        .toolset(Toolset::Claude)
        .deny("launch_missiles")
        .deny("Bash(rm *)")
        .surroundings(Surroundings {
            environment: world.ambient.env.clone(),
            temp_dir: scratch.dir().clone(),
            ..Surroundings::default()
        })
        .tool(deploy())
        .tool(FnTool::new(Spec::new("launch_missiles", "Launches missiles."), |_: DeployInput, _| async {
            Ok(Output::text("this never runs"))
        }))
        .approver(Person)
        .sink(ledger)
        .journal(Arc::clone(&journal))
        .build()?;

    let project = scratch.dir().join("project");
    out.line("A model works in a temporary project. Everything it asks for crosses one boundary:")?;
    out.line(&paint(
        style::FAINT,
        "resolve → validate → screen → judge → settle → guard → run → finish → one record",
    ))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (index, scene) in script(&project.to_string()).into_iter().enumerate() {
        out.line(&format!("\n{} {}", paint(style::BOLD, &format!("{}.", index + 1)), scene.says))?;
        out.line(&format!("   {} {}", paint(style::BOLD, scene.tool), visible(&scene.input)))?;
        let closed = runtime.block_on(toolgate.call(format!("call_{}", index + 1), scene.tool, &scene.input));
        tell(&closed, out)?;
        out.flush()?;
    }
    take_back(&journal, out)?;
    epilogue(&ledger_dir, out)?;
    if args.keep {
        out.line(&format!("\nThe workspace is kept in {}", scratch.dir()))?;
    }
    Ok(Exit::Ok)
}

fn script(project: &str) -> Vec<Scene> {
    let text = |value: Value| value.to_string();
    vec![
        Scene {
            says: "It looks around. Reading inside the workspace is free.",
            tool: "ls",
            input: text(json!({ "recursive": true })),
        },
        Scene {
            says: "It reads a file.",
            tool: "Read",
            input: text(json!({ "file_path": format!("{project}/src/main.rs") })),
        },
        Scene {
            says: "It misspells a field, and is told which one it meant.",
            tool: "Read",
            input: text(json!({ "file_pth": "README.md" })),
        },
        Scene {
            says: "It says one thing twice. A lenient reader would pick one; this one refuses.",
            tool: "Read",
            input: format!(r#"{{"file_path": "{project}/README.md", "file_p\u0061th": "/etc/shadow"}}"#),
        },
        Scene {
            says: "It reads through a link that leads out of the workspace. Policy judges the real file, so a person \
                   is asked, and says no.",
            tool: "Read",
            input: text(json!({ "file_path": format!("{project}/notes") })),
        },
        Scene {
            says: "It edits the file that it has read. A person is asked, and says yes.",
            tool: "Edit",
            input: text(json!({
                "file_path": format!("{project}/src/main.rs"),
                "old_string": "hello",
                "new_string": "goodbye",
            })),
        },
        Scene {
            says: "It runs a command that only reads. Every part of the line is judged, and nobody need be asked.",
            tool: "Bash",
            input: text(json!({ "command": "grep -rn goodbye . | wc -l" })),
        },
        Scene {
            says: "It runs a command that no rule speaks of. A person is asked, and says yes; it runs in a sandbox.",
            tool: "Bash",
            input: text(json!({ "command": "python3 build.py", "description": "Build the project" })),
        },
        Scene {
            says: "It hides a command that a rule denies inside another one.",
            tool: "Bash",
            input: text(json!({ "command": "echo \"$(rm -rf src)\"" })),
        },
        Scene {
            says: "It wants to deploy to staging. No rule speaks of that, so a person is asked, and says yes.",
            tool: "deploy",
            input: text(json!({ "target": "staging" })),
        },
        Scene {
            says: "It tries a tool that a rule denies. The tool is not shown, so it is not there.",
            tool: "launch_missiles",
            input: text(json!({ "target": "moon" })),
        },
        Scene {
            says: "It makes up a tool, and is told what there is.",
            tool: "Raed",
            input: text(json!({ "file_path": "x" })),
        },
    ]
}

fn deploy() -> impl toolgate::Tool {
    FnTool::new(Spec::new("deploy", "Deploys the project."), |input: DeployInput, _| async move {
        Ok(Output::text(format!("deployed to {}", input.target)))
    })
    .intent(|input, scene| {
        let marker = scene.path(&format!("deployed/{}", input.target));
        Intent::new(
            format!("deploy to {}", input.target),
            [Effect::Write { path: marker, kind: WriteKind::Put }],
        )
    })
}

/// The scripted person: agrees to an edit in the project and to deploy to staging, and to nothing else.
struct Person;

impl Approver for Person {
    fn name(&self) -> &str {
        "the person"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        let asked = request.question.description.as_str();
        let yes = asked == "deploy to staging"
            || asked.starts_with("edit ")
            || asked.starts_with("run `python3 build.py`");
        let answer = if yes {
            Answer::Once
        } else {
            Answer::No { message: Some("that file is none of your business".to_owned()) }
        };
        Box::pin(std::future::ready(answer))
    }
}

fn tell(closed: &Closed, out: &mut Out) -> Result<(), Failure> {
    let record = &closed.record;
    if let Some(judged) = &record.judged {
        let word = paint(style::verdict(&judged.verdict), &judged.verdict);
        out.line(&format!("   judged {word}: {}", visible(&judged.reason.to_string())))?;
    }
    if let Some(approval) = &record.approval {
        out.line(&format!("   {} answered: {}", approval.by, paint(style::BOLD, &approval.answer)))?;
    }
    match (&closed.result, &record.outcome) {
        (Ok(output), _) => {
            for line in visible(&output.model_text()).lines().take(6) {
                out.line(&format!("   {} {line}", paint(style::GOOD, "│")))?;
            }
        }
        (Err(refusal), Outcome::Refused { stage, .. }) => {
            let partial = refusal.partial.as_deref().map(Output::model_text).unwrap_or_default();
            // The end says what became of it.
            let lines: Vec<String> = visible(&partial).lines().map(str::to_owned).collect();
            for line in lines.iter().skip(lines.len().saturating_sub(3)) {
                out.line(&format!("   {} {line}", paint(style::BAD, "│")))?;
            }
            out.line(&format!(
                "   {} at {stage}: {} [{} {}]",
                paint(style::BAD, "refused"),
                visible(&refusal.reason),
                refusal.code,
                refusal.kind
            ))?;
            out.line(&format!("   hint: {}", visible(&refusal.hint)))?;
        }
        (Err(refusal), Outcome::Done { .. }) => out.line(&visible(&refusal.to_string()))?,
    }
    Ok(())
}

/// The person thinks better of the edit.
fn take_back(journal: &Journal, out: &mut Out) -> Result<(), Failure> {
    out.line("\nThe person thinks better of that edit, as `toolgate undo` would:")?;
    let moved = journal
        .undo(&UndoSelector::Last(Among::default()), How::Careful)
        .map_err(|problem| Failure::Usage(problem.to_string()))?;
    for restore in &moved.restores {
        let diff =
            unified_diff(&restore.path.to_string(), restore.now.as_deref(), restore.then.as_deref(), 12);
        for line in visible(&diff).lines() {
            out.line(&format!("   {} {line}", paint(style::GOOD, "│")))?;
        }
    }
    Ok(())
}

fn epilogue(ledger_dir: &toolgate::AbsPath, out: &mut Out) -> Result<(), Failure> {
    let (report, _) = verify_in(ledger_dir, &AppendLog::default_anchor_dir(ledger_dir))?;
    let held = if report.intact() { "holds" } else { "is broken" };
    out.line(&format!(
        "\n{} calls, {} records; the chain of the ledger {held}.",
        report.records, report.records
    ))?;
    out.line("Try it yourself: `toolgate tools`, `toolgate call ls`, `toolgate check Read '{\"file_path\":\"/etc/hosts\"}'`, `toolgate log`.")?;
    Ok(())
}
