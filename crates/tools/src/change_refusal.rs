//! Refusals of a change to a file: not read before, changed since, invalid content.
//!
//! After each of them the file has the content that it had before the call, and the message says what to do next.

use crate::file_refusal::file_refusal;
use toolgate_files::ChangeProblem;
use toolgate_proto::{AbsPath, Code, Output, Refusal};

/// Problems of invalid content that a refusal lists; a broken file may have hundreds.
const MAX_LISTED_PROBLEM_COUNT: usize = 10;

/// The refusal for a change that could not be made. `otherwise` is the code of the calling tool.
pub(crate) fn change_refusal(path: &AbsPath, problem: &ChangeProblem, otherwise: Code) -> Refusal {
    match problem {
        ChangeProblem::File(problem) => file_refusal(path, problem, otherwise),
        ChangeProblem::Changed => Refusal::new(
            Code::ChangedSinceRead,
            format!(
                "another program changed `{path}` during this call; its change was kept, yours was not made"
            ),
        ),
        ChangeProblem::InvalidContent(problems) => {
            let mut problems = problems.clone();
            let omitted = problems.len().saturating_sub(MAX_LISTED_PROBLEM_COUNT);
            problems.truncate(MAX_LISTED_PROBLEM_COUNT);
            if omitted > 0 {
                problems.push(format!("and {omitted} more"));
            }
            Refusal::new(
                otherwise,
                format!(
                    "`{path}` is unchanged, because the new content is not valid: {}",
                    problems.join("; ")
                ),
            )
            .hint("make the content valid, then repeat the change")
        }
        ChangeProblem::Unrecorded(reason) => Refusal::new(
            otherwise,
            format!("`{path}` is unchanged, because the change could not be recorded for undo ({reason})"),
        )
        .hint("check that the state directory is writable and has free space, then repeat the change"),
    }
}

/// The refusal for a file that exists and that the session has not read.
pub(crate) fn not_read_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(Code::NotRead, format!("`{path}` exists and was not read in this session"))
}

/// The refusal for replacing a file of which the session has read only a part.
pub(crate) fn partly_read_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(
        Code::NotRead,
        format!("only a part of `{path}` was read, and this call would replace all of it"),
    )
    .hint("read the whole file first, or change only the part you know with an edit")
}

/// The refusal for a file whose content differs from what was read, with the difference where it is known.
pub(crate) fn changed_since_read_refusal(path: &AbsPath, diff: Option<String>) -> Refusal {
    let refusal = Refusal::new(Code::ChangedSinceRead, format!("`{path}` has changed since it was read"));
    match diff {
        Some(diff) => refusal.with_partial(Output::text(format!("what changed:\n{diff}"))),
        None => refusal,
    }
}
