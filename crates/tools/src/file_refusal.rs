//! Refusals for a path that cannot be opened, with a hint at what was meant.
//!
//! A model often has a path almost right: another extension, another case, a file that moved to a sibling name.
//! A hint with similar names saves it a listing of the directory.

use toolgate_files::{FileProblem, GrantedFiles};
use toolgate_proto::{AbsPath, Code, Refusal};

/// Names that are less similar than this (Jaro-Winkler) are no suggestion.
const MIN_NAME_SIMILARITY: f64 = 0.8;
/// Names that a hint suggests.
const MAX_SUGGESTION_COUNT: usize = 3;

/// The refusal for a file that could not be opened. `otherwise` is the code of the calling tool, for problems that
/// have no code of their own.
pub(crate) fn file_refusal(path: &AbsPath, problem: &FileProblem, otherwise: Code) -> Refusal {
    match problem {
        FileProblem::Missing => Refusal::new(Code::FileNotFound, format!("there is no file `{path}`")),
        FileProblem::IsDirectory => {
            Refusal::new(Code::NotAFile, format!("`{path}` is a directory")).hint("list it with `ls` instead")
        }
        FileProblem::NotDirectory => Refusal::new(otherwise, format!("`{path}` is not a directory"))
            .hint("name a directory, or read the file instead"),
        FileProblem::Special => Refusal::new(
            Code::NotAFile,
            format!("`{path}` is a pipe, a socket or a device: reading it could block forever"),
        ),
        FileProblem::Denied => {
            Refusal::new(Code::AccessDenied, format!("the operating system denies access to `{path}`"))
        }
        FileProblem::SymlinkOnPath => Refusal::new(
            otherwise,
            format!("a symlink appeared on the path `{path}` after the call was judged"),
        )
        .hint("call again: the new path will be judged"),
        FileProblem::NotGranted => {
            Refusal::new(Code::Undeclared, format!("`{path}` is not among the paths that this call declared"))
        }
        FileProblem::Other(_) | _ => Refusal::new(otherwise, format!("`{path}`: {problem}")),
    }
}

/// Checks that a path field of the claude toolset is absolute: those models are trained to give absolute paths, so a
/// relative one is a mistake rather than a path below the working directory.
pub(crate) fn check_absolute(field: &str, path: &str) -> Result<(), Refusal> {
    if AbsPath::new(path).is_err() && !path.starts_with("~/") {
        return Err(Refusal::new(
            Code::BadArgument,
            format!("`{field}` must be an absolute path, got `{path}`"),
        )
        .hint("put the workspace directory before it"));
    }
    Ok(())
}

/// The refusal for a missing file, with similar names of the same directory as a hint.
pub(crate) fn missing_file_refusal(files: &GrantedFiles, path: &AbsPath) -> Refusal {
    let refusal = file_refusal(path, &FileProblem::Missing, Code::FileNotFound);
    let suggestions = similar_names(files, path);
    if suggestions.is_empty() {
        return refusal;
    }
    refusal.hint(format!("did you mean {}?", suggestions.join(" or ")))
}

/// The most similar names of the same directory, as full paths in backticks.
fn similar_names(files: &GrantedFiles, path: &AbsPath) -> Vec<String> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let wanted = name.to_string_lossy().to_lowercase();
    let mut similar: Vec<(f64, String)> = files
        .sibling_names(path)
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= MIN_NAME_SIMILARITY)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    similar
        .into_iter()
        .take(MAX_SUGGESTION_COUNT)
        .map(|(_, name)| format!("`{}`", parent.join(name)))
        .collect()
}
