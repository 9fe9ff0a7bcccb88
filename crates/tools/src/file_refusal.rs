//! What models are told when a file is not what they took it for.

use toolgate_files::{FileProblem, GrantedFiles};
use toolgate_proto::{AbsPath, Code, Refusal};

/// The refusal for a file that could not be read.
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
            format!("`{path}` is a pipe, a socket or a device, which would block or never end"),
        ),
        FileProblem::Denied => {
            Refusal::new(Code::AccessDenied, format!("the operating system refuses access to `{path}`"))
        }
        FileProblem::SymlinkOnPath => {
            Refusal::new(otherwise, format!("a link appeared on the way to `{path}` after it was judged"))
                .hint("call again: the path will be judged anew")
        }
        FileProblem::NotGranted => {
            Refusal::new(Code::Undeclared, format!("`{path}` is not among the paths of this call"))
        }
        FileProblem::Other(words) => Refusal::new(otherwise, format!("`{path}`: {words}")),
    }
}

/// Checks that a path of the claude face is absolute.
pub(crate) fn check_absolute(field: &str, path: &str) -> Result<(), Refusal> {
    if AbsPath::new(path).is_err() && !path.starts_with("~/") {
        return Err(Refusal::new(
            Code::BadArgument,
            format!("`/{field}` must be an absolute path, got `{path}`"),
        )
        .hint("put the workspace directory before it"));
    }
    Ok(())
}

/// The same for a missing file, with names beside it that may have been meant.
pub(crate) fn missing_file_refusal(files: &GrantedFiles, path: &AbsPath) -> Refusal {
    let refusal = file_refusal(path, &FileProblem::Missing, Code::FileNotFound);
    let near = similar_names(files, path);
    if near.is_empty() {
        return refusal;
    }
    refusal.hint(format!("did you mean {}?", near.join(" or ")))
}

fn similar_names(files: &GrantedFiles, path: &AbsPath) -> Vec<String> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let wanted = name.to_string_lossy().to_lowercase();
    let mut near: Vec<(f64, String)> = files
        .sibling_names(path)
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.into_iter().take(3).map(|(_, name)| format!("`{}`", parent.join(name))).collect()
}
