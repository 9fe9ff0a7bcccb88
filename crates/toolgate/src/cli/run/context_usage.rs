//! How full the context window is, as hosts ask for it.

use serde_json::{Value, json};
use toolgate::agent::AgentLoop;
use toolgate::agent::subagent::AgentDefinition;
use toolgate::{AbsPath, Toolgate};

/// How many bytes a token has, roughly; providers do not say before a request.
const BYTES_PER_TOKEN_COUNT: u64 = 4;

/// The answer to `get_context_usage`.
pub(super) fn context_usage(
    toolgate: &Toolgate,
    agent: &AgentLoop,
    (memory_files, types): (&[(AbsPath, usize)], Vec<AgentDefinition>),
) -> Value {
    let settings = agent.settings();
    let estimate = |bytes: usize| bytes as u64 / BYTES_PER_TOKEN_COUNT;
    let tools = toolgate.tools();
    let is_mcp = |name: &str| name.starts_with("mcp__");
    let size = |tool: &toolgate::ToolDefinition| {
        estimate(tool.description.len() + tool.input_schema.to_string().len())
    };
    let builtin: u64 = tools.iter().filter(|tool| !is_mcp(tool.name.as_str())).map(size).sum();
    let remote: Vec<Value> = tools
        .iter()
        .filter(|tool| is_mcp(tool.name.as_str()))
        .map(|tool| json!({ "name": tool.name, "tokens": size(tool) }))
        .collect();
    let remote_tokens: u64 =
        remote.iter().filter_map(|tool| tool.get("tokens").and_then(Value::as_u64)).sum();
    let system = estimate(settings.system_prompt.len());
    let messages: u64 = agent
        .messages()
        .iter()
        .flat_map(|message| &message.content)
        .map(|block| estimate(block.to_string().len()))
        .sum();
    let memory: u64 = memory_files.iter().map(|(_, bytes)| estimate(*bytes)).sum();
    let file_entry = |(path, bytes): &(AbsPath, usize)| json!({ "path": path, "tokens": estimate(*bytes) });
    // The descriptions of types are in that of the tool that starts agents.
    let agent_entry = |known: &AgentDefinition| json!({ "agentType": known.name, "tokens": estimate(known.name.len() + known.description.len()) });
    let counted = agent.context_usage();
    let counted = counted.context_tokens() + counted.output_tokens;
    let total = if counted > 0 { counted } else { system + builtin + remote_tokens + messages };
    let max = settings.context_tokens.max(1);
    let category = |name: &str, tokens: u64, kind: &str| json!({ "name": name, "tokens": tokens, "color": "default", "kind": kind });
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let percentage = (total as f64 / max as f64 * 100.0).round();
    json!({
        "categories": [
            category("System prompt", system, "system"),
            category("Tools", builtin, "tools"),
            category("MCP tools", remote_tokens, "mcp"),
            category("Memory files", memory.min(messages), "memory"),
            category("Messages", messages.saturating_sub(memory), "messages"),
            category("Free space", max.saturating_sub(total), "free"),
        ],
        "totalTokens": total,
        "maxTokens": max,
        "rawMaxTokens": max,
        "percentage": percentage,
        "gridRows": [],
        "model": settings.model,
        "memoryFiles": memory_files.iter().map(file_entry).collect::<Vec<_>>(),
        "mcpTools": remote,
        "agents": types.iter().map(agent_entry).collect::<Vec<_>>(),
        "isAutoCompactEnabled": settings.auto_compact,
        "apiUsage": agent.context_usage(),
    })
}
