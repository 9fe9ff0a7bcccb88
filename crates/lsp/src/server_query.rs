//! From the answers of a server to the places and texts of a result.

use crate::connection::RequestError;
use crate::found_place::RawPlace;
use crate::language_server::LanguageServer;
use crate::uri_path::to_uri;
use gen_lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, Definition, DefinitionResponse,
    DocumentSymbol, DocumentSymbolResponse, Location, Position, SymbolKind, Uri, WorkspaceSymbolLocation,
    WorkspaceSymbolResponse,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_proto::AbsPath;

/// How deep symbols are nested in a result; a hostile server may nest them deeper.
const MAX_SYMBOL_DEPTH: usize = 32;

/// The requests of one call.
pub(crate) struct ServerQuery<'a> {
    /// The server that is asked.
    pub(crate) server: &'a LanguageServer,
    /// The file of the call.
    pub(crate) path: &'a AbsPath,
    /// The time limit of each request.
    pub(crate) limit: Duration,
    /// Ends the requests with the call.
    pub(crate) cancel: &'a CancellationToken,
}

impl ServerQuery<'_> {
    /// The parameters of a request about a position in the file.
    fn position_params(&self, position: Position) -> Value {
        json!({ "textDocument": { "uri": to_uri(self.path).0 }, "position": position })
    }

    /// Sends a request; `None` is the answer `null`.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Option<T>, RequestError> {
        self.server.request(method, params, self.limit, self.cancel).await
    }

    /// The places of `textDocument/definition` or `textDocument/implementation`.
    pub(crate) async fn definitions(
        &self,
        method: &str,
        position: Position,
    ) -> Result<Vec<RawPlace>, RequestError> {
        let found: Option<DefinitionResponse> = self.ask(method, &self.position_params(position)).await?;
        Ok(match found {
            None => Vec::new(),
            Some(DefinitionResponse::Definition(Definition::Location(location))) => vec![place(location)],
            Some(DefinitionResponse::Definition(Definition::LocationList(list))) => {
                list.into_iter().map(place).collect()
            }
            Some(DefinitionResponse::DefinitionLinkList(links)) => links
                .into_iter()
                .map(|link| RawPlace {
                    uri: link.target_uri,
                    range: Some(link.target_selection_range),
                    label: None,
                })
                .collect(),
        })
    }

    /// Every use of the symbol at the position, its declaration included.
    pub(crate) async fn references(&self, position: Position) -> Result<Vec<RawPlace>, RequestError> {
        let mut params = self.position_params(position);
        if let Value::Object(params) = &mut params {
            params.insert("context".to_owned(), json!({ "includeDeclaration": true }));
        }
        let found: Option<Vec<Location>> = self.ask("textDocument/references", &params).await?;
        Ok(found.unwrap_or_default().into_iter().map(place).collect())
    }

    /// The text about the position, if there is one.
    pub(crate) async fn hover(&self, position: Position) -> Result<Option<String>, RequestError> {
        let hover: Option<Value> = self.ask("textDocument/hover", &self.position_params(position)).await?;
        let text = hover.and_then(|hover| hover.get("contents").map(hover_text));
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// The symbols of the file, each with its depth.
    pub(crate) async fn document_symbols(&self) -> Result<Vec<(usize, RawPlace)>, RequestError> {
        let params = json!({ "textDocument": { "uri": to_uri(self.path).0 } });
        let found: Option<DocumentSymbolResponse> = self.ask("textDocument/documentSymbol", &params).await?;
        let mut symbols = Vec::new();
        match found {
            None => {}
            Some(DocumentSymbolResponse::SymbolInformationList(list)) => {
                for symbol in list {
                    let label = symbol_label(
                        symbol.base_symbol_information.kind,
                        &symbol.base_symbol_information.name,
                        symbol.base_symbol_information.container_name.as_deref(),
                    );
                    symbols.push((0, RawPlace { label: Some(label), ..place(symbol.location) }));
                }
            }
            Some(DocumentSymbolResponse::DocumentSymbolList(list)) => {
                flatten_symbols(list, &to_uri(self.path), 0, &mut symbols);
            }
        }
        Ok(symbols)
    }

    /// The symbols of the project whose names match.
    pub(crate) async fn workspace_symbols(&self, query: &str) -> Result<Vec<RawPlace>, RequestError> {
        let found: Option<WorkspaceSymbolResponse> =
            self.ask("workspace/symbol", &json!({ "query": query })).await?;
        Ok(match found {
            None => Vec::new(),
            Some(WorkspaceSymbolResponse::SymbolInformationList(list)) => list
                .into_iter()
                .map(|symbol| {
                    let base = symbol.base_symbol_information;
                    let label = symbol_label(base.kind, &base.name, base.container_name.as_deref());
                    RawPlace { label: Some(label), ..place(symbol.location) }
                })
                .collect(),
            Some(WorkspaceSymbolResponse::WorkspaceSymbolList(list)) => list
                .into_iter()
                .map(|symbol| {
                    let base = symbol.base_symbol_information;
                    let label = symbol_label(base.kind, &base.name, base.container_name.as_deref());
                    match symbol.location {
                        WorkspaceSymbolLocation::Location(location) => {
                            RawPlace { label: Some(label), ..place(location) }
                        }
                        WorkspaceSymbolLocation::LocationUriOnly(location) => {
                            RawPlace { uri: location.uri, range: None, label: Some(label) }
                        }
                    }
                })
                .collect(),
        })
    }

    /// The functions at the position, as items of the call hierarchy.
    pub(crate) async fn call_items(
        &self,
        position: Position,
    ) -> Result<Vec<CallHierarchyItem>, RequestError> {
        let method = "textDocument/prepareCallHierarchy";
        let found: Option<Vec<CallHierarchyItem>> = self.ask(method, &self.position_params(position)).await?;
        Ok(found.unwrap_or_default())
    }

    /// The calls of each item, from other functions.
    pub(crate) async fn incoming_calls(
        &self,
        items: Vec<CallHierarchyItem>,
    ) -> Result<Vec<RawPlace>, RequestError> {
        let mut places = Vec::new();
        for item in items {
            let calls: Option<Vec<CallHierarchyIncomingCall>> =
                self.ask("callHierarchy/incomingCalls", &json!({ "item": item })).await?;
            for call in calls.unwrap_or_default() {
                let from = call_place(&call.from);
                // The calls are in the file of the caller.
                places.extend(
                    call.from_ranges.iter().map(|range| RawPlace { range: Some(*range), ..from.clone() }),
                );
                if call.from_ranges.is_empty() {
                    places.push(from);
                }
            }
        }
        Ok(places)
    }

    /// The functions that each item calls.
    pub(crate) async fn outgoing_calls(
        &self,
        items: Vec<CallHierarchyItem>,
    ) -> Result<Vec<RawPlace>, RequestError> {
        let mut places = Vec::new();
        for item in items {
            let calls: Option<Vec<CallHierarchyOutgoingCall>> =
                self.ask("callHierarchy/outgoingCalls", &json!({ "item": item })).await?;
            places.extend(calls.unwrap_or_default().iter().map(|call| call_place(&call.to)));
        }
        Ok(places)
    }
}

/// A place without a label.
fn place(location: Location) -> RawPlace {
    RawPlace { uri: location.uri, range: Some(location.range), label: None }
}

/// The place of an item of the call hierarchy: the name of the function.
pub(crate) fn call_place(item: &CallHierarchyItem) -> RawPlace {
    RawPlace {
        uri: item.uri.clone(),
        range: Some(item.selection_range),
        label: Some(symbol_label(item.kind, &item.name, None)),
    }
}

/// Lists nested symbols with their depth.
fn flatten_symbols(symbols: Vec<DocumentSymbol>, uri: &Uri, depth: usize, out: &mut Vec<(usize, RawPlace)>) {
    for symbol in symbols {
        let label = symbol_label(symbol.kind, &symbol.name, None);
        out.push((
            depth,
            RawPlace { uri: uri.clone(), range: Some(symbol.selection_range), label: Some(label) },
        ));
        if depth < MAX_SYMBOL_DEPTH {
            flatten_symbols(symbol.children.unwrap_or_default(), uri, depth + 1, out);
        }
    }
}

/// The text of a hover: markup, or one of the older forms, a text or a block of code, or a list of them.
fn hover_text(contents: &Value) -> String {
    let text = |name: &str| contents.get(name).and_then(Value::as_str);
    match (contents, text("language"), text("value")) {
        (Value::String(text), _, _) => text.clone(),
        (Value::Array(parts), _, _) => parts.iter().map(hover_text).collect::<Vec<_>>().join("\n\n"),
        (_, Some(language), Some(value)) => format!("```{language}\n{value}\n```"),
        (_, None, Some(value)) => value.to_owned(),
        (_, _, None) => String::new(),
    }
}

/// The kind and the name of a symbol, and what contains it.
fn symbol_label(kind: SymbolKind, name: &str, container: Option<&str>) -> String {
    let kind = match kind {
        SymbolKind::File => "file",
        SymbolKind::Module => "module",
        SymbolKind::Namespace => "namespace",
        SymbolKind::Package => "package",
        SymbolKind::Class => "class",
        SymbolKind::Method => "method",
        SymbolKind::Property => "property",
        SymbolKind::Field => "field",
        SymbolKind::Constructor => "constructor",
        SymbolKind::Enum => "enum",
        SymbolKind::Interface => "interface",
        SymbolKind::Function => "function",
        SymbolKind::Variable => "variable",
        SymbolKind::Constant => "constant",
        SymbolKind::String => "string",
        SymbolKind::Number => "number",
        SymbolKind::Boolean => "boolean",
        SymbolKind::Array => "array",
        SymbolKind::Object => "object",
        SymbolKind::Key => "key",
        SymbolKind::Null => "null",
        SymbolKind::EnumMember => "enum member",
        SymbolKind::Struct => "struct",
        SymbolKind::Event => "event",
        SymbolKind::Operator => "operator",
        SymbolKind::TypeParameter => "type parameter",
        SymbolKind::Custom(_) => "symbol",
    };
    match container.filter(|container| !container.is_empty()) {
        Some(container) => format!("{kind} {name} (in {container})"),
        None => format!("{kind} {name}"),
    }
}
