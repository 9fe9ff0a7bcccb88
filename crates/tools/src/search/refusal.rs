//! Refusals of searches: a start that cannot be opened, a glob that is not valid, an unknown file type.

use crate::file_refusal::{file_refusal, missing_file_refusal};
use toolgate_files::FileProblem;
use toolgate_gate::Cleared;
use toolgate_proto::{AbsPath, Code, Refusal};
use toolgate_search::{SearchProblem, SelectionProblem};

/// File types that are less similar than this (Jaro-Winkler) are no suggestion.
const MIN_TYPE_SIMILARITY: f64 = 0.7;
/// File types that a hint suggests.
const MAX_SUGGESTION_COUNT: usize = 3;

/// The refusal for a search that could not run. `code` is the code of the calling tool.
pub(crate) fn search_refusal(
    cleared: &Cleared,
    path: &AbsPath,
    problem: SearchProblem,
    code: Code,
) -> Refusal {
    match problem {
        SearchProblem::Stopped => Refusal::new(Code::Cancelled, "the search was cancelled"),
        SearchProblem::File(FileProblem::Missing) => missing_file_refusal(cleared.files(), path),
        SearchProblem::File(problem) => file_refusal(path, &problem, code),
    }
}

/// The refusal for globs and file types that cannot be used.
pub(crate) fn selection_refusal(problem: &SelectionProblem, code: Code) -> Refusal {
    match problem {
        SelectionProblem::Glob { glob, reason } => Refusal::new(
            code,
            format!("`{glob}` is not a valid glob: {reason}"),
        )
        .hint("use `*`, `**`, `?`, `[abc]`, `{a,b}`; put `\\` before such a character to match it literally"),
        SelectionProblem::Type { name, known } => {
            let mut similar: Vec<(f64, &String)> = known
                .iter()
                .map(|known| (strsim::jaro_winkler(known, name), known))
                .filter(|(similarity, _)| *similarity > MIN_TYPE_SIMILARITY)
                .collect();
            similar.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            let similar: Vec<_> =
                similar.iter().take(MAX_SUGGESTION_COUNT).map(|(_, known)| format!("`{known}`")).collect();
            let suggestion = if similar.is_empty() {
                String::new()
            } else {
                format!("did you mean {}? ", similar.join(" or "))
            };
            Refusal::new(code, format!("unknown file type `{name}`"))
                .hint(format!("{suggestion}for files without a type use a `glob` such as `*.{name}`"))
        }
    }
}
