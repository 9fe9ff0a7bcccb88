//! `toolgate lsp`: the language servers of this project, and whether they work.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolgate::lsp::{LspServerEntry, RunningServer, find_server_program, read_running_servers};
use toolgate::lsp_servers::{RESTART_FILE, STATUS_DIR, collect_servers};
use toolgate::render::escape_invisible;
use toolgate::settings::trust::TrustStatus;
use toolgate::{Code, Refusal, Toolgate, Toolset};

/// How long the command waits for the runtime's tasks at its end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Arguments of `toolgate lsp`.
#[derive(Debug, clap::Args)]
pub(crate) struct LspArgs {
    #[command(subcommand)]
    command: Option<LspCommand>,
}

/// The commands of `toolgate lsp`.
#[derive(Debug, Subcommand)]
enum LspCommand {
    /// List the language servers, and how to install those that are missing (the default)
    Status,
    /// Start all language servers of running toolgates anew, at their next call
    Restart,
    /// Start the language server of a file, and print what it says about the file
    Test {
        /// The file
        file: String,
    },
}

/// Runs `status`, `restart` or `test`.
pub(crate) fn run(
    context: &CliContext,
    args: &LspArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match args.command.as_ref().unwrap_or(&LspCommand::Status) {
        LspCommand::Status => print_status(context, out),
        LspCommand::Restart => restart(context, out),
        LspCommand::Test { file } => test(context, file, out),
    }
}

/// Lists the configured language servers, whether their program is installed, whether project trust lets them start, and
/// what those of running toolgates do. Starts no server.
fn print_status(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.no_builtin_tools().build()?;
    let settings = toolgate.settings();
    let (servers, problems) = collect_servers(&settings);
    for problem in &problems {
        out.print_note(problem);
    }
    let trusted = settings.trust_status == TrustStatus::Trusted;
    let status_dir = context.ambient.state_dir.as_ref().map(|dir| dir.join(STATUS_DIR));
    let running = status_dir.map_or(Ok(Vec::new()), |dir| read_running_servers(&dir));
    let running = running.unwrap_or_else(|problem| {
        out.print_note(&format!("what running language servers do cannot be read: {problem}"));
        Vec::new()
    });
    for server in &servers {
        let program = find_server_program(server, &context.ambient.env);
        let instances: Vec<_> = running.iter().filter(|running| running.server == server.name).collect();
        if context.global.json {
            let extensions: Vec<&String> = server.languages.keys().collect();
            let line = json!({
                "server": server.name, "command": server.command, "program": program, "extensions": extensions,
                "origin": server.origin, "install": server.install, "mayStart": trusted, "instances": instances,
            });
            out.print_line(&line.to_string())?;
            continue;
        }
        print_server(server, program.map(|program| program.to_string()), out)?;
        for instance in instances {
            out.print_line(&format!("{:16} {}", "", describe_instance(instance)))?;
        }
    }
    if !trusted {
        out.print_note(
            "language servers run code of the project, so none starts until you run `toolgate trust add`",
        );
    }
    Ok(CliExitCode::Ok)
}

/// One server: where its program is, or how to install it, and the files that it serves.
fn print_server(
    server: &LspServerEntry,
    program: Option<String>,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let state = match (program, &server.install) {
        (Some(program), _) => paint(style::GOOD, &escape_invisible(&program)),
        (None, Some(install)) => {
            paint(style::FAINT, &format!("not installed; {}", escape_invisible(install)))
        }
        (None, None) => paint(style::ASK, "not installed"),
    };
    let extensions = server.languages.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    let extensions = paint(style::FAINT, &escape_invisible(&extensions));
    out.print_line(&format!("{:16} {state}  {extensions}", escape_invisible(&server.name)))?;
    Ok(())
}

/// What an instance of a running toolgate does, as one line.
fn describe_instance(running: &RunningServer) -> String {
    let instance = &running.instance;
    let crashes = match instance.crashes {
        0 => String::new(),
        1 => ", crashed once".to_owned(),
        count => format!(", crashed {count} times"),
    };
    let error = instance.last_error.as_deref().unwrap_or("it was ended");
    let text = match instance.pid {
        Some(pid) => {
            let state = match (instance.ready, instance.activity.as_deref()) {
                (true, _) => "ready".to_owned(),
                (false, Some(activity)) => format!("still indexing ({activity})"),
                (false, None) => "still indexing".to_owned(),
            };
            let files = if instance.open_files == 1 { "file" } else { "files" };
            format!(
                "runs in {} as process {pid} of toolgate {}: {state}, {} {files} open{crashes}",
                instance.root, running.toolgate_pid, instance.open_files
            )
        }
        None => format!(
            "does not run in {} for toolgate {}: {error}{crashes}",
            instance.root, running.toolgate_pid
        ),
    };
    escape_invisible(&text)
}

/// Requests a restart of the servers of every running toolgate by rewriting a marker file in the state directory, which
/// each server pool checks at the next call.
fn restart(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let Some(dir) = &context.ambient.state_dir else {
        return Err(CliError::Usage("there is no state directory; set TOOLGATE_STATE_DIR".to_owned()));
    };
    toolgate_files::make_private_dir(dir).map_err(|problem| CliError::Usage(format!("{dir}: {problem}")))?;
    let file = dir.join(RESTART_FILE);
    toolgate_files::write_private_file(&file, toolgate_files::now_millis().to_string().as_bytes())
        .map_err(|problem| CliError::Usage(format!("{file}: {problem}")))?;
    let text = "running toolgates start their language servers anew at the next call that needs them";
    out.print_done(context.global.json, &json!({ "restart": "at the next call that needs them" }), text)?;
    Ok(CliExitCode::Ok)
}

/// What a server says about a file.
struct FileReport {
    /// The answer to `documentSymbol`, the first request, which also starts the server.
    symbols: Result<Value, Refusal>,
    /// The answer to `diagnostics`; repeats the first refusal if the server did not start.
    diagnostics: Result<Value, Refusal>,
    /// Time until the first answer, which includes the start of the server.
    started_in: Duration,
    /// Time until both answers arrived.
    took: Duration,
}

/// Starts the server of a file and makes two requests through the gate, so that a failure shows the same refusal that
/// an agent would get.
fn test(context: &CliContext, file: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let entered = runtime.enter();
    let toolgate = context.builder()?.build()?;
    drop(entered);
    let path = context.ambient.absolute_path(file);
    if let Some(problem) = explain_no_server(context, &toolgate, file) {
        return Err(CliError::Usage(problem));
    }
    let report = runtime.block_on(async {
        let started = Instant::now();
        let symbols = ask(&toolgate, context.global.toolset, "documentSymbol", &path.to_string()).await;
        let started_in = started.elapsed();
        let diagnostics = match &symbols {
            Ok(_) => ask(&toolgate, context.global.toolset, "diagnostics", &path.to_string()).await,
            Err(refusal) => Err(refusal.clone()),
        };
        let took = started.elapsed();
        toolgate.close_sources().await;
        FileReport { symbols, diagnostics, started_in, took }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    print_report(context, &report, out)
}

/// Why there is no tool to ask, if no server is installed: the tool is registered only with one.
fn explain_no_server(context: &CliContext, toolgate: &Toolgate, file: &str) -> Option<String> {
    let (servers, _) = collect_servers(&toolgate.settings());
    if servers.iter().any(|server| find_server_program(server, &context.ambient.env).is_some()) {
        return None;
    }
    let serves = |server: &&LspServerEntry| server.languages.keys().any(|end| file.ends_with(end.as_str()));
    let hint = match servers.iter().find(serves) {
        Some(LspServerEntry { name, install: Some(install), .. }) => {
            format!("install `{name}`: {install}; `toolgate lsp` lists the others")
        }
        Some(server) => format!("put the program `{}` of `{}` into PATH", server.command, server.name),
        None => "no server is known for such a file; add one to `lspServers` in your settings (docs/lsp.md)"
            .to_owned(),
    };
    Some(format!("no language server is installed\n  hint: {hint}"))
}

/// Calls the LSP tool under the name that the toolset gives it and returns the structured result.
async fn ask(toolgate: &Toolgate, toolset: Toolset, operation: &str, file: &str) -> Result<Value, Refusal> {
    let name = match toolset {
        Toolset::Claude => "LSP",
        Toolset::Plain => "lsp",
    };
    let input = json!({ "operation": operation, "filePath": file });
    let outcome = toolgate.call(operation, name, &input.to_string()).await;
    let output = outcome.result.map_err(|refusal| match refusal.code {
        // A server is installed, so the tool is hidden; the nearest name would be that of another tool.
        Code::UnknownTool => refusal.hint(format!("`toolgate call {name} '{{}}'` says what hides the tool")),
        _ => refusal,
    })?;
    Ok(output.structured.unwrap_or_default())
}

/// Prints the report, or the refusal of the first request that failed. The refusal also determines the exit code.
fn print_report(
    context: &CliContext,
    report: &FileReport,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let (symbols, diagnostics) = match (&report.symbols, &report.diagnostics) {
        (Ok(symbols), Ok(diagnostics)) => (symbols, diagnostics),
        (Err(refusal), _) | (_, Err(refusal)) => {
            if context.global.json {
                out.print_line(&json!({ "ok": false, "refusal": refusal }).to_string())?;
            } else {
                out.print_error(&format!("{} ({})", refusal.reason, refusal.hint));
            }
            return Ok(CliExitCode::of(refusal));
        }
    };
    let count = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let server = symbols.get("server").and_then(Value::as_str).unwrap_or_default();
    let complete = diagnostics.get("complete").and_then(Value::as_bool).unwrap_or(false);
    let (symbols, problems) = (count(symbols, "results"), count(diagnostics, "diagnostics"));
    if context.global.json {
        let line = json!({
            "ok": true, "server": server, "symbols": symbols, "diagnostics": problems, "complete": complete,
            "startedInMs": report.started_in.as_millis() as u64, "tookMs": report.took.as_millis() as u64,
        });
        out.print_line(&line.to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let indexed = if complete { "indexed" } else { "still indexing" };
    out.print_line(&format!(
        "{}: {symbols} symbols after {:.1} s, {problems} diagnostics after {:.1} s, {indexed}",
        paint(style::GOOD, &escape_invisible(server)),
        report.started_in.as_secs_f32(),
        report.took.as_secs_f32(),
    ))?;
    Ok(CliExitCode::Ok)
}
