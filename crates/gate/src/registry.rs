//! The tools there are, by name.
//!
//! Identity is the pair (source, name).
//! A second tool of the same pair replaces the first; the same name from another source is refused with both owners
//! named, because a model could not distinguish the two and a rule would apply to the wrong one.

use crate::schema::{SchemaValidator, input_schema_of};
use crate::tool::{ErasedTool, Tool, ToolSpec, TypedTool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use toolgate_proto::{SourceId, ToolDefinition, ToolIdentity, ToolName};

/// A tool as the registry keeps it.
pub struct RegisteredTool {
    pub(crate) tool: Box<dyn ErasedTool>,
    pub(crate) spec: ToolSpec,
    pub(crate) identity: ToolIdentity,
    pub(crate) checker: SchemaValidator,
    /// Generates the schema of the input type, where the spec has none.
    generate_schema: fn() -> Value,
    /// Made when it is first asked for: the schemas of all tools are a third of the time of a start, and a client lists
    /// less than half of them.
    definition: OnceLock<ToolDefinition>,
    /// About how many bytes the definition has in a list.
    definition_bytes: usize,
}

impl std::fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl RegisteredTool {
    /// Prepares a tool. Its schema is checked here, unless it is one of ours.
    pub fn new<T: Tool>(source: SourceId, tool: T) -> Result<Self, RegisterError> {
        let spec = tool.spec();
        let name = spec.name.as_str();
        let fits = !name.is_empty()
            && name.len() <= 128
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !fits {
            return Err(RegisterError::BadName { name: name.to_owned() });
        }
        let generate_schema = input_schema_of::<T::Input>;
        let checker = match &spec.input_schema {
            Some(schema) => SchemaValidator::new(schema),
            // Built-in schemas are known to be valid; a test compiles each.
            None if source == SourceId::Builtin => Ok(SchemaValidator::deferred(generate_schema)),
            None => SchemaValidator::new(&generate_schema()),
        };
        let checker =
            checker.map_err(|problem| RegisterError::BadSchema { name: spec.name.clone(), problem })?;
        let identity = ToolIdentity::new(spec.name.clone(), source)
            .with_also(spec.aliases.iter().chain(&spec.family).cloned().collect())
            .with_read_only(spec.read_only)
            .with_requires_interaction(spec.requires_interaction);
        // Only those of MCP servers are counted.
        let definition_bytes = match &identity.source {
            SourceId::Mcp { .. } => {
                let schema_bytes = spec.input_schema.as_ref().map_or(0, |schema| schema.to_string().len());
                spec.description.len() + schema_bytes + spec.name.as_str().len()
            }
            SourceId::Builtin | SourceId::Sdk | SourceId::Plugin { .. } | SourceId::Skill { .. } => 0,
        };
        let tool = Box::new(TypedTool(Arc::new(tool)));
        let definition = OnceLock::new();
        Ok(Self { tool, spec, identity, checker, generate_schema, definition, definition_bytes })
    }

    /// The identity of the tool.
    pub fn identity(&self) -> &ToolIdentity {
        &self.identity
    }

    /// The tool's properties.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// About how many bytes the definition takes in a list; 0 for tools that are not of an MCP server.
    pub(crate) fn definition_bytes(&self) -> usize {
        self.definition_bytes
    }

    /// The definition that models and clients get.
    pub fn definition(&self) -> &ToolDefinition {
        self.definition.get_or_init(|| {
            let spec = &self.spec;
            let schema = spec.input_schema.clone().unwrap_or_else(self.generate_schema);
            let source = self.identity.source.clone();
            let mut definition =
                ToolDefinition::new(spec.name.clone(), spec.description.clone(), schema, source);
            definition.title.clone_from(&spec.title);
            definition.output_schema.clone_from(&spec.output_schema);
            definition.input_examples.clone_from(&spec.input_examples);
            definition.aliases.clone_from(&spec.aliases);
            definition.annotations = spec.annotations();
            definition.concurrency = spec.concurrency;
            definition.max_result_chars = spec.max_result_chars;
            definition
        })
    }
}

/// Why a tool was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name, or an alias, belongs to another tool.
    #[error("`{name}` from {newcomer} collides with `{owner_name}` from {owner}")]
    Collision {
        /// The name in dispute.
        name: String,
        /// The tool that has it.
        owner_name: ToolName,
        /// The source of that tool.
        owner: SourceId,
        /// The source that wants it too.
        newcomer: SourceId,
    },
    /// The name has characters that providers refuse.
    #[error("invalid tool name `{name}`: use 1 to 128 letters, digits, `_` and `-`")]
    BadName {
        /// The name.
        name: String,
    },
    /// The schema cannot be used.
    #[error("tool `{name}`: {problem}")]
    BadSchema {
        /// The tool.
        name: ToolName,
        /// What is wrong.
        problem: String,
    },
    /// The source of the tool was closed, or its gate is gone.
    #[error("tool `{name}` was not registered: its source is closed")]
    SourceClosed {
        /// The tool.
        name: ToolName,
    },
}

/// The tools there are. Cheap to clone; a clone does not change when the original does.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// By canonical name, and so in name order.
    tools: BTreeMap<String, Arc<RegisteredTool>>,
    /// From alias to canonical name.
    aliases: BTreeMap<String, String>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, or replaces the one of the same source and name.
    pub fn register(&mut self, newcomer: RegisteredTool) -> Result<Arc<RegisteredTool>, RegisterError> {
        let name = newcomer.identity.name.as_str().to_owned();
        let names = std::iter::once(&name).chain(&newcomer.spec.aliases);
        for wanted in names {
            if let Some(owner) = self.get(wanted) {
                let same =
                    owner.identity.source == newcomer.identity.source && owner.identity.name.as_str() == name;
                if !same {
                    return Err(RegisterError::Collision {
                        name: wanted.clone(),
                        owner_name: owner.identity.name.clone(),
                        owner: owner.identity.source.clone(),
                        newcomer: newcomer.identity.source.clone(),
                    });
                }
            }
        }
        self.remove(&name);
        let newcomer = Arc::new(newcomer);
        for alias in &newcomer.spec.aliases {
            self.aliases.insert(alias.clone(), name.clone());
        }
        self.tools.insert(name, Arc::clone(&newcomer));
        Ok(newcomer)
    }

    /// Removes a tool of a source. False if that source has no tool of that name.
    pub fn unregister(&mut self, source: &SourceId, name: &str) -> bool {
        match self.tools.get(name) {
            Some(tool) if tool.identity.source == *source => self.remove(name),
            _ => false,
        }
    }

    /// Removes a tool and its aliases. False if there is none of that name.
    fn remove(&mut self, name: &str) -> bool {
        self.aliases.retain(|_, canonical| canonical != name);
        self.tools.remove(name).is_some()
    }

    /// Finds a tool by its name or an alias.
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        match self.tools.get(name) {
            Some(tool) => Some(tool),
            None => self.tools.get(self.aliases.get(name)?),
        }
    }

    /// Every tool, in name order.
    pub fn list(&self) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        self.tools.values()
    }
}
