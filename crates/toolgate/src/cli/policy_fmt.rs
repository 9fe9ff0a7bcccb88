//! `toolgate policy fmt`: gives the rules of settings files one spelling.

use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::AbsPath;
use toolgate::settings::format_rules;
use toolgate::settings::trust::TrustStore;
use toolgate_proto::format_count;
use toolgate_proto::json::JsonLimits;
use toolgate_proto::protected_names::SETTINGS_DIRECTORIES;

/// Arguments of `toolgate policy fmt`.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyFmtArgs {
    /// The files; the shared settings files of the project if none is given
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Change nothing; exit with 1 if a file would change
    #[arg(long)]
    check: bool,
}

/// The help after the options.
pub(crate) const POLICY_FMT_HELP: &str = "\
Each rule gets its usual spelling (`Bash(npm run:*)` becomes `Bash(npm run *)`, `Task` becomes `Agent`), rules that are \
listed twice are removed, and each stands on its own line. Comments and order stay, and so does trust in the project.";

/// Formats the files, or reports which would change.
pub(crate) fn run_policy_fmt(
    context: &CliContext,
    args: &PolicyFmtArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let files: Vec<AbsPath> = match args.files.is_empty() {
        true => project_files(context),
        false => args.files.iter().map(|file| context.ambient.absolute_path(file)).collect(),
    };
    let is_json = context.global.json;
    let mut changed: Vec<&AbsPath> = Vec::new();
    for path in &files {
        let text = toolgate_files::read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| CliError::Usage(format!("{path}: no such file")))?;
        let formatted = format_rules(&path.to_string(), &text).map_err(|mut error| {
            // The usual advice is about a file that calls depend on, and any file can be named here.
            error.fix = "only settings files can be formatted, which are JSON; correct it, or name another"
                .to_owned();
            error
        })?;
        if formatted == text {
            continue;
        }
        changed.push(path);
        if args.check {
            if !is_json {
                out.print_line(&format!("{path} would change"))?;
            }
            continue;
        }
        toolgate_files::replace_shared_file(path, formatted.as_bytes())
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
        if let Some(dir) = &context.ambient.state_dir {
            TrustStore::in_dir(dir).update_after_own_write(&context.cwd(), path, Some(&text), &formatted)?;
        }
        if !is_json {
            out.print_line(&format!("{path} formatted"))?;
        }
    }
    if is_json {
        let done = json!({ "files": files, "changed": changed, "written": !args.check });
        out.print_line(&done.to_string())?;
    } else if changed.is_empty() {
        out.print_line(&format!("{}, nothing to change", format_count(files.len() as u64, "file", "files")))?;
    }
    Ok(if args.check && !changed.is_empty() { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

/// The shared settings files of the project that exist. The local file is left alone, because the rules in it that you
/// granted at prompts are remembered by their spelling.
fn project_files(context: &CliContext) -> Vec<AbsPath> {
    let root = context.cwd();
    let all = SETTINGS_DIRECTORIES.iter().map(|folder| root.join(folder).join("settings.json"));
    all.filter(|path| toolgate_files::read_file_stamp(path) != toolgate_files::FileStamp::Absent).collect()
}
