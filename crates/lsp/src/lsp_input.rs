//! The input of the tool: operations, and positions as people give them.

use crate::document_text::{ColumnUnit, DocumentText};
use gen_lsp_types::{Position, Range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_proto::{AbsPath, Code, Refusal, format_count};

/// Characters of a line in a message.
const MAX_SHOWN_CHARS: usize = 120;

/// What to ask the language server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LspOperation {
    /// Where the symbol is defined.
    GoToDefinition,
    /// Every use of the symbol.
    FindReferences,
    /// The type and the documentation of the symbol.
    Hover,
    /// The symbols of the file.
    DocumentSymbol,
    /// Symbols of the project by name.
    WorkspaceSymbol,
    /// What implements the interface or method.
    GoToImplementation,
    /// The function at the position, as an item of the call hierarchy.
    PrepareCallHierarchy,
    /// What calls the function.
    IncomingCalls,
    /// What the function calls.
    OutgoingCalls,
    /// The errors and warnings of the file.
    Diagnostics,
    /// Renames the symbol in every file.
    Rename,
    /// Formats the file.
    Formatting,
    /// Lists the fixes and refactorings that the server offers for the line or position.
    CodeActions,
    /// Makes one of them, by its title.
    ApplyCodeAction,
    /// Makes a change that one of the three above has computed.
    ApplyEdit,
}

impl LspOperation {
    /// The name in the input.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GoToDefinition => "goToDefinition",
            Self::FindReferences => "findReferences",
            Self::Hover => "hover",
            Self::DocumentSymbol => "documentSymbol",
            Self::WorkspaceSymbol => "workspaceSymbol",
            Self::GoToImplementation => "goToImplementation",
            Self::PrepareCallHierarchy => "prepareCallHierarchy",
            Self::IncomingCalls => "incomingCalls",
            Self::OutgoingCalls => "outgoingCalls",
            Self::Diagnostics => "diagnostics",
            Self::Rename => "rename",
            Self::Formatting => "formatting",
            Self::CodeActions => "codeActions",
            Self::ApplyCodeAction => "applyCodeAction",
            Self::ApplyEdit => "applyEdit",
        }
    }

    /// The method of the protocol that a server must offer; `None` for diagnostics, which every server may publish.
    pub(crate) fn method(self) -> Option<&'static str> {
        match self {
            Self::GoToDefinition => Some("textDocument/definition"),
            Self::FindReferences => Some("textDocument/references"),
            Self::Hover => Some("textDocument/hover"),
            Self::DocumentSymbol => Some("textDocument/documentSymbol"),
            Self::WorkspaceSymbol => Some("workspace/symbol"),
            Self::GoToImplementation => Some("textDocument/implementation"),
            Self::PrepareCallHierarchy | Self::IncomingCalls | Self::OutgoingCalls => {
                Some("textDocument/prepareCallHierarchy")
            }
            Self::Rename => Some("textDocument/rename"),
            Self::Formatting => Some("textDocument/formatting"),
            Self::CodeActions | Self::ApplyCodeAction => Some("textDocument/codeAction"),
            Self::Diagnostics | Self::ApplyEdit => None,
        }
    }

    /// Whether it needs a position.
    fn needs_position(self) -> bool {
        match self {
            Self::GoToDefinition
            | Self::FindReferences
            | Self::Hover
            | Self::GoToImplementation
            | Self::PrepareCallHierarchy
            | Self::IncomingCalls
            | Self::OutgoingCalls
            | Self::Rename => true,
            Self::DocumentSymbol
            | Self::WorkspaceSymbol
            | Self::Diagnostics
            | Self::Formatting
            | Self::CodeActions
            | Self::ApplyCodeAction
            | Self::ApplyEdit => false,
        }
    }

    /// Whether the answer depends on other files, and so on a finished index.
    pub(crate) fn needs_index(self) -> bool {
        !matches!(self, Self::DocumentSymbol | Self::Formatting | Self::ApplyEdit)
    }

    /// Whether it changes files, by a call of its own.
    pub(crate) fn changes_files(self) -> bool {
        matches!(self, Self::Rename | Self::Formatting | Self::ApplyCodeAction)
    }
}

/// Input of the tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct LspInput {
    /// What to ask.
    pub operation: LspOperation,
    /// The file, absolute or relative to the working directory. It also chooses the language server.
    pub file_path: String,
    /// The line, from 1.
    #[schemars(range(min = 1))]
    pub line: Option<u32>,
    /// The column, from 1, in characters. With `symbol` it is not needed.
    #[schemars(range(min = 1))]
    pub character: Option<u32>,
    /// The name on that line that is meant, instead of `character`.
    pub symbol: Option<String>,
    /// workspaceSymbol: the name, or a part of it; empty lists all that the server offers.
    pub query: Option<String>,
    /// rename: the new name.
    pub new_name: Option<String>,
    /// applyCodeAction: the title, as codeActions lists it.
    pub action: Option<String>,
    /// applyEdit: the id of the change.
    pub edit: Option<String>,
}

impl LspInput {
    /// Checks that a schema cannot express.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let bad = |reason: String| Err(Refusal::new(Code::BadArgument, reason));
        let name = self.operation.as_str();
        if self.operation.needs_position() {
            if self.line.is_none() {
                return bad(format!("`{name}` needs `line`, and `character` or `symbol`"));
            }
            if self.character.is_none() && self.symbol.as_ref().is_none_or(String::is_empty) {
                return bad(format!("`{name}` needs `character`, or the `symbol` on the line"));
            }
        }
        if self.operation == LspOperation::WorkspaceSymbol && self.query.is_none() {
            return bad("`workspaceSymbol` needs `query`; an empty one lists all symbols".to_owned());
        }
        let is_empty = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
        match self.operation {
            LspOperation::Rename if is_empty(&self.new_name) => bad("`rename` needs `newName`".to_owned()),
            LspOperation::ApplyCodeAction if is_empty(&self.action) => {
                bad("`applyCodeAction` needs `action`, a title that `codeActions` lists".to_owned())
            }
            LspOperation::ApplyEdit if is_empty(&self.edit) => bad("`applyEdit` needs `edit`".to_owned()),
            LspOperation::CodeActions | LspOperation::ApplyCodeAction if self.line.is_none() => {
                bad(format!("`{name}` needs `line`"))
            }
            _ => Ok(()),
        }
    }

    /// The range that is meant: the position, or the whole line without a column.
    pub(crate) fn range(
        &self,
        path: &AbsPath,
        index: &DocumentText,
        unit: ColumnUnit,
    ) -> Result<Range, Refusal> {
        if self.character.is_some() || self.symbol.is_some() {
            let position = self.position(path, index, unit)?;
            return Ok(Range { start: position, end: position });
        }
        let start = self.position(path, index, unit)?;
        let line = usize::try_from(start.line).unwrap_or(usize::MAX);
        let length = index.line(line).map_or(0, |text| text.chars().count());
        Ok(Range { start, end: index.position(line, length, unit).unwrap_or(start) })
    }

    /// The position in the file, checked against its text.
    pub(crate) fn position(
        &self,
        path: &AbsPath,
        index: &DocumentText,
        unit: ColumnUnit,
    ) -> Result<Position, Refusal> {
        let line = usize::try_from(self.line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(text) = index.line(line) else {
            return Err(Refusal::new(
                Code::PastEnd,
                format!(
                    "`{path}` has {}, so there is no line {}",
                    format_count(index.line_count() as u64, "line", "lines"),
                    line + 1
                ),
            ));
        };
        let shown: String = text.trim().chars().take(MAX_SHOWN_CHARS).collect();
        let column = match (&self.symbol, self.character) {
            (Some(symbol), None) => index.find_symbol(line, symbol).ok_or_else(|| {
                Refusal::new(
                    Code::BadArgument,
                    format!("`{symbol}` is not on line {} of `{path}`, which is `{shown}`", line + 1),
                )
                .hint("read the file again, or find the line with Grep")
            })?,
            (_, column) => usize::try_from(column.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX),
        };
        index.position(line, column, unit).ok_or_else(|| {
            let length = text.chars().count();
            Refusal::new(
                Code::PastEnd,
                format!(
                    "line {} of `{path}` has {}: `{shown}`",
                    line + 1,
                    format_count(length as u64, "character", "characters")
                ),
            )
            .hint("give the `symbol` that is meant instead of `character`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(value: serde_json::Value) -> LspInput {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_position_is_given_by_column_or_by_name_and_checked_against_the_file() {
        let path = AbsPath::root().join("a.ts");
        let index = DocumentText::new("const s = '😀'; square(2);\n".to_owned());
        let at = |value: serde_json::Value| {
            let mut value = value;
            value["operation"] = json!("hover");
            value["filePath"] = json!("a.ts");
            let input = input(value);
            input.check().and_then(|()| input.position(&path, &index, ColumnUnit::Utf16))
        };
        let found = at(json!({ "line": 1, "symbol": "square" })).unwrap();
        assert_eq!((found.line, found.character), (0, 16));
        assert_eq!(at(json!({ "line": 1, "character": 16 })).unwrap(), found);
        assert_eq!(at(json!({ "line": 9, "symbol": "x" })).unwrap_err().code, Code::PastEnd);
        assert_eq!(at(json!({ "line": 1, "character": 99 })).unwrap_err().code, Code::PastEnd);
        assert!(
            at(json!({ "line": 1, "symbol": "circle" })).unwrap_err().reason.contains("is not on line 1")
        );
        assert_eq!(at(json!({ "line": 1 })).unwrap_err().code, Code::BadArgument);
        assert_eq!(at(json!({ "character": 1 })).unwrap_err().code, Code::BadArgument);
    }
}
