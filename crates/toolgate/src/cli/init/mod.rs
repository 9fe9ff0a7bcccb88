//! `toolgate init`: writes a commented starter policy for the project that it finds.
//!
//! Two files are written: the rules (`.toolgate/settings.json`) and a test of them (`.toolgate/policy.md`), so that the
//! first change of a rule can be checked with one command. Existing files are kept.

mod project;

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use project::DetectedProject;
use serde_json::json;
use toolgate::AbsPath;
use toolgate::settings::lint_text;
use toolgate_policy::ProblemSeverity;

/// Bytes of a file of the project that are read to recognise it.
const MAX_PROJECT_FILE_BYTES: u64 = 1024 * 1024;

/// The line of `.gitignore` that keeps the user's own settings out of the repository.
const IGNORED_FILE: &str = ".toolgate/settings.local.json";

/// Arguments of `toolgate init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Print the policy instead of writing files
    #[arg(long)]
    dry_run: bool,
    /// Replace the files if they exist
    #[arg(long)]
    force: bool,
}

/// Detects the project, writes the files and prints the next commands.
pub(crate) fn run(
    context: &CliContext,
    args: &InitArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let root = context.cwd();
    let project = DetectedProject::detect(&root)?;
    let settings = project.render_settings();
    let fatal = |problem: &toolgate::settings::SettingsProblem| problem.weight == ProblemSeverity::Fatal;
    if let Some(problem) = lint_text("settings.json", &settings).into_iter().find(fatal) {
        return Err(CliError::Usage(format!("the starter policy is not valid: {problem}")));
    }
    if args.dry_run {
        match context.global.json {
            true => {
                let files = json!({ ".toolgate/settings.json": settings, ".toolgate/policy.md": project.render_cases() });
                out.print_line(&json!({ "project": project.kinds, "files": files }).to_string())?;
            }
            false => out.print_raw(&settings)?,
        }
        return Ok(CliExitCode::Ok);
    }
    let mut written = Vec::new();
    let files = [(".toolgate/settings.json", settings), (".toolgate/policy.md", project.render_cases())];
    for (name, text) in files {
        let path = root.join(name);
        if !args.force && read(&path)?.is_some() {
            out.print_note(&format!("{path} exists and is kept; --force replaces it"));
            continue;
        }
        write(&path, &text)?;
        written.push(name);
    }
    if add_ignored_file(&root)? {
        written.push(".gitignore");
    }
    if context.global.json {
        out.print_line(&json!({ "project": project.kinds, "written": written }).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    out.print_line(&match project.kinds.is_empty() {
        true => "no known kind of project found: the policy has only general rules".to_owned(),
        false => format!("found: {}", project.kinds.join(", ")),
    })?;
    for name in written {
        out.print_line(&format!("{}  {name}", paint(style::GOOD, "wrote")))?;
    }
    out.print_line("next:")?;
    for (command, meaning) in [
        ("toolgate trust add", "the allow rules of a project count once you trust it"),
        ("toolgate policy test", "compare the rules with .toolgate/policy.md"),
        (project.example_check.as_str(), "see what a call would get, and why"),
    ] {
        out.print_line(&format!("  {command}  {}", paint(style::FAINT, &format!("# {meaning}"))))?;
    }
    Ok(CliExitCode::Ok)
}

/// Adds the line to `.gitignore`, unless it is there. Returns whether the file changed.
fn add_ignored_file(root: &AbsPath) -> Result<bool, CliError> {
    let path = root.join(".gitignore");
    let before = read(&path)?;
    let is_listed = |text: &str| {
        let lines = text.lines().map(|line| line.trim().trim_start_matches('/'));
        lines
            .into_iter()
            .any(|line| matches!(line, IGNORED_FILE | "settings.local.json" | ".toolgate/*.local.json"))
    };
    if before.as_deref().is_some_and(is_listed) {
        return Ok(false);
    }
    let mut text = before.unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(IGNORED_FILE);
    text.push('\n');
    write(&path, &text)?;
    Ok(true)
}

/// The text of a file of the project; `None` if it does not exist.
fn read(path: &AbsPath) -> Result<Option<String>, CliError> {
    toolgate_files::read_settings_text(path, MAX_PROJECT_FILE_BYTES)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

/// Writes a file of the project.
fn write(path: &AbsPath, text: &str) -> Result<(), CliError> {
    toolgate_files::replace_shared_file(path, text.as_bytes())
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}
