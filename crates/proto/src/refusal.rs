//! Refusals: denials and failures as one value with a stable code, and the table of all codes.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// The stage of the pipeline at which a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Finds a visible tool of the name.
    Resolve,
    /// Parses the input and checks it against the tool's schema.
    Validate,
    /// Runs the PreToolUse hooks.
    Screen,
    /// Policy decides.
    Judge,
    /// Turns the verdict into a permit, asking an approver where it says so.
    Settle,
    /// Checks the tool's own preconditions.
    Guard,
    /// Runs the tool.
    Run,
    /// Runs the PostToolUse hooks and truncates the result.
    Finish,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: [Self; 8] = [
        Self::Resolve,
        Self::Validate,
        Self::Screen,
        Self::Judge,
        Self::Settle,
        Self::Guard,
        Self::Run,
        Self::Finish,
    ];

    /// The name used in records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Validate => "validate",
            Self::Screen => "screen",
            Self::Judge => "judge",
            Self::Settle => "settle",
            Self::Guard => "guard",
            Self::Run => "run",
            Self::Finish => "finish",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table of codes, from which `docs/errors.md` is generated.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CodeInfo {
    /// The code.
    pub code: Code,
    /// The number in `TG-nnn`. Never reused.
    pub number: u16,
    /// The name of the error type, which programs may match on.
    pub kind: &'static str,
    /// The stage at which it usually arises.
    pub stage: Stage,
    /// What happened, in general.
    pub meaning: &'static str,
    /// What to do next, for the model or the user.
    pub hint: &'static str,
}

macro_rules! codes {
    ($( $name:ident = $number:literal, $kind:literal, $stage:ident, $meaning:literal, $hint:literal; )+) => {
        /// Why a call was refused or failed. Numbers are stable and never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $( #[doc = $meaning] $name, )+
        }

        /// Every code, in numeric order.
        pub const CODES: &[CodeInfo] = &[
            $( CodeInfo { code: Code::$name, number: $number, kind: $kind, stage: Stage::$stage, meaning: $meaning, hint: $hint }, )+
        ];

        impl Code {
            /// The row of the table for this code.
            pub fn info(self) -> CodeInfo {
                match self {
                    $( Self::$name => CodeInfo { code: self, number: $number, kind: $kind, stage: Stage::$stage, meaning: $meaning, hint: $hint }, )+
                }
            }
        }
    };
}

codes! {
    InvalidJson = 1, "InvalidJsonError", Validate, "the input is not valid JSON", "send one JSON object";
    DuplicateKey = 2, "DuplicateKeyError", Validate, "a key appears twice in one object", "send each key once";
    TooDeep = 3, "InputTooDeepError", Validate, "the input is nested too deeply", "flatten the input";
    TooLarge = 4, "InputTooLargeError", Validate, "the input is too large", "send less at once";
    NotAnObject = 5, "InvalidJsonError", Validate, "the input is not a JSON object", "send one JSON object";
    TrailingText = 6, "InvalidJsonError", Validate, "text follows the JSON document", "send exactly one JSON object";

    UnknownTool = 101, "ToolNotFoundError", Resolve, "no tool of that name is available here", "call one of the listed tools";

    InvalidInput = 201, "ValidationError", Validate, "the input does not fit the tool's schema", "correct the named fields and call again";
    BadArgument = 202, "ValidationError", Validate, "the tool does not take this combination of values", "correct the named fields and call again";

    HookDenied = 301, "HookDeniedError", Screen, "a hook refused the call", "do what the hook's message says";
    HookFailed = 302, "HookFailedError", Screen, "a hook crashed or could not be started, so the call was refused", "correct the hook, or set `onFailure: continue` on it";
    HookTimedOut = 303, "HookTimeoutError", Screen, "a hook did not answer before its timeout, so the call was refused", "correct the hook, or raise its timeout";
    HookUnreadable = 304, "HookOutputError", Screen, "a hook's output could not be parsed, so the call was refused", "make the hook print one JSON object, or nothing";
    HookDeferred = 305, "HookDeferredError", Screen, "a hook deferred the call", "resume the call later";
    HookMissing = 306, "HookMissingError", Screen, "a hook's program was not found, so the call was refused", "install the program or correct its path, or set `onFailure: continue` on the hook";
    HookStopped = 307, "HookStoppedError", Screen, "a hook stopped the agent", "stop here and tell the user why";

    DeniedByRule = 401, "PermissionError", Judge, "the call is denied by a rule", "do it another way, or ask the owner of the rule";
    DeniedByMode = 402, "PermissionError", Judge, "the permission mode denies the call", "add a rule that allows it, or change the mode";
    ProtectedPath = 403, "PermissionError", Judge, "the path is protected", "leave this file to the user";
    OutsideRoots = 404, "PermissionError", Judge, "the path is outside the workspace", "work inside the workspace, or add the directory with --add-dir";
    UnusablePolicy = 405, "PolicyError", Judge, "a deny or ask rule cannot be parsed, so every call is denied", "correct the rule that the message names";
    UnresolvablePath = 406, "PermissionError", Judge, "the path could not be resolved, so the call was refused", "check the path";
    DangerousCall = 407, "PermissionError", Judge, "the call is dangerous", "do it in a less dangerous way, or leave it to the user";

    Declined = 501, "PermissionError", Settle, "the user declined the call", "do not repeat the call; ask the user what to do instead";
    ApprovalUnavailable = 502, "ApprovalUnavailableError", Settle, "the call needs approval, and no approver is available", "add a rule that allows it, or run in an interactive session";
    ApprovalTimedOut = 503, "ConfirmationTimeoutError", Settle, "no approver answered before the timeout", "call again when the user can answer";
    ApprovalLost = 504, "ApprovalLostError", Settle, "the connection to the approver was lost, so the call was refused", "try again";
    ApprovalPending = 505, "ApprovalPendingError", Settle, "the client has to ask the user and repeat the call with the answer", "answer the question";

    NotRead = 601, "FileNotReadError", Guard, "the file must be read before it is changed", "read the file, then repeat the change";
    ChangedSinceRead = 602, "FileChangedError", Guard, "the file changed since it was read", "read the file again, then repeat the change";
    Undeclared = 603, "UndeclaredEffectError", Run, "the tool tried to access something that its intent did not declare", "report this to the tool's author: the intent is incomplete";
    Unforeseen = 604, "UnforeseenEffectError", Run, "a command tried something that its judgement did not predict, and the sandbox refused it", "allow the command by a rule if it should do this; otherwise report a gap in the command analysis";
    NotRecordable = 605, "NotRecordedError", Guard, "the call could not be recorded, and the settings require a record of every call", "make the ledger writable again, or see `ledger.required` in the settings";

    FileNotFound = 701, "FileNotFoundError", Run, "the file does not exist", "check the path";
    FileExists = 702, "FileExistsError", Run, "the file exists already", "set `overwrite`, or choose another path";
    AccessDenied = 703, "PermissionError", Run, "the operating system refused access", "check the file's owner and mode";
    FileRead = 704, "FileReadError", Run, "the file could not be read", "check the path and its permissions";
    FileWrite = 705, "FileWriteError", Run, "the file could not be written; it is as it was", "check that the directory exists, can be written and has room";
    FileEdit = 706, "FileEditError", Run, "the edit could not be made; the file is as it was", "read the file again, and edit what it contains now";
    EditTargetNotFound = 707, "EditTargetNotFound", Run, "the text to replace is not in the file", "read the file again and copy the text exactly";
    EditTargetAmbiguous = 708, "EditTargetAmbiguous", Run, "the text to replace appears more than once", "include more of the surrounding text, or replace all";
    NotAFile = 709, "NotAFileError", Run, "the path is a directory, a device, a socket or a pipe", "name a regular file";
    BinaryFile = 710, "BinaryFileError", Run, "the file is not text", "use a tool made for this kind of file";
    List = 711, "LsError", Run, "the directory could not be listed", "check that the path is a directory that can be read";
    Glob = 712, "GlobError", Run, "the pattern could not be used", "correct the pattern";
    Grep = 713, "GrepError", Run, "the search could not be made", "correct the pattern";
    PastEnd = 714, "RangeError", Run, "the range starts after the end of the file", "ask for lines that exist";
    ShellFailed = 720, "ShellExecutionError", Run, "the command failed", "see its output";
    ShellTimedOut = 721, "ShellTimeoutError", Run, "the command reached its timeout and was stopped", "raise the timeout, or run the command in the background";
    SandboxUnavailable = 722, "SandboxError", Run, "the sandbox that the settings require is not available", "see `toolgate doctor`";
    Fetch = 730, "FetchError", Run, "the URL could not be fetched", "check the URL, or try again later";
    Http = 731, "HttpError", Run, "the server answered with an error", "for a status of 4xx check the URL, for 5xx try again later";
    Search = 732, "SearchError", Run, "the search service failed", "try again later, or fetch a URL that is known";
    Memory = 740, "MemoryError", Run, "the memory could not be used", "action `list` shows the keys";
    Todo = 741, "TodoError", Run, "the to-do list could not be changed", "list the to-dos to see their ids";
    Config = 742, "ConfigError", Run, "the setting could not be read or changed", "ask the user to change it";
    Schedule = 743, "ScheduleError", Run, "the schedule could not be changed", "CronList shows the schedules";
    Worktree = 744, "WorktreeError", Run, "the git worktree could not be entered or left", "`git worktree list` shows the worktrees, EnterWorktree makes one";
    RemoteFailed = 750, "RemoteToolError", Run, "the tool of the MCP server failed", "the message is the server's own: change the arguments to what it asks for";
    RemoteUnavailable = 751, "RemoteUnavailableError", Run, "the MCP server cannot be reached", "see `toolgate mcp test`";
    RemoteAuth = 752, "RemoteAuthError", Run, "the MCP server requires you to sign in", "sign in, then call again";
    LspFailed = 760, "LanguageServerError", Run, "the language server failed", "try again, or use Grep and Read";
    LspUnavailable = 761, "LanguageServerUnavailableError", Run, "no language server can answer", "see `toolgate lsp status`";
    SkillNotFound = 770, "SkillNotFoundError", Guard, "there is no skill of that name", "use a skill that is listed";
    SkillFailed = 771, "SkillError", Run, "the skill could not be loaded", "`toolgate skill show NAME` shows what it needs";
    ToolFailed = 790, "ToolError", Run, "the tool failed", "the message is the tool's own: change the arguments to what it asks for";
    ToolPanicked = 791, "ToolPanicError", Run, "the tool crashed; toolgate caught it", "report this to the tool's author";

    Cancelled = 801, "CancelledError", Run, "the call was cancelled", "call again if it is still wanted";
    DeadlinePassed = 802, "TimeoutError", Run, "the call reached its deadline", "raise the deadline, or do less in one call";

    Internal = 901, "InternalError", Run, "toolgate itself failed, so the call was refused", "report this with the record of the call";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TG-{:03}", self.info().number)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        CODES
            .iter()
            .find(|info| info.code.to_string() == text)
            .map(|info| info.code)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown toolgate code `{text}`")))
    }
}

/// A denial or a failure. Models, users and logs get their texts from this one value.
#[must_use = "a refusal must reach the caller"]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The stable code, `TG-nnn`.
    pub code: Code,
    /// The name of the error type, from the table.
    pub kind: String,
    /// The stage at which the call ended.
    pub stage: Stage,
    /// What happened, with the names and values of this call. Lower case, without a full stop.
    pub reason: String,
    /// What to do next, for the model or the user.
    pub hint: String,
    /// What the tool produced before it failed, such as the output of a command. The model gets it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Box<crate::Output>>,
}

impl Refusal {
    /// Creates a refusal with the kind, stage and hint of the table.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        let info = code.info();
        Self {
            code,
            kind: info.kind.to_owned(),
            stage: info.stage,
            reason: reason.into(),
            hint: info.hint.to_owned(),
            partial: None,
        }
    }

    /// Sets another stage than the table's.
    pub fn at_stage(mut self, stage: Stage) -> Self {
        self.stage = stage;
        self
    }

    /// Sets a hint that fits the case better than the table's.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds what the tool produced before it failed.
    pub fn with_partial(mut self, output: crate::Output) -> Self {
        self.partial = Some(Box::new(output));
        self
    }

    /// Leaves out what the tool produced before it failed.
    pub fn without_partial(mut self) -> Self {
        self.partial = None;
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{} {}]", self.reason, self.code, self.kind)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_in_order() {
        for pair in CODES.windows(2) {
            assert!(pair[0].number < pair[1].number, "{} then {}", pair[0].code, pair[1].code);
        }
    }

    #[test]
    fn every_code_survives_a_round_trip() {
        for info in CODES {
            let text = serde_json::to_string(&info.code).unwrap();
            assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), info.code);
            assert!(!info.meaning.is_empty() && !info.hint.is_empty());
        }
    }
}
