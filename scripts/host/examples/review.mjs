// A reviewer: it reads what it likes, and writes nothing but review.md.
// The TypeScript SDK, in plain JavaScript so that node runs it as it is.
//
// Usage: review.mjs TOOLGATE FOLDER   (the model is found by the environment, see docs/agent.md;
// AGENT_SDK_DIR names the folder whose node_modules has the SDK, if it is not installed beside this file)
// @ts-check
import { createRequire } from "node:module";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [toolgate, folder] = process.argv.slice(2);
const place = createRequire(pathToFileURL(`${process.env.AGENT_SDK_DIR ?? import.meta.dirname}/index.mjs`));
const { query } = await import(pathToFileURL(place.resolve("@anthropic-ai/claude-agent-sdk")).href);

// Is asked where the policy asks, and only there.
async function canUseTool(tool, input) {
  if (tool === "Write" && basename(input.file_path) === "review.md") return { behavior: "allow", updatedInput: input };
  return { behavior: "deny", message: "only review.md may be written" };
}

async function* prompts() {
  const content = "Read notes.txt and write a review of it to review.md.";
  yield { type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content } };
}

const options = { pathToClaudeCodeExecutable: toolgate, cwd: folder, canUseTool };
for await (const message of query({ prompt: prompts(), options })) {
  if (message.type === "assistant") {
    for (const block of message.message.content) if (block.type === "text") console.log(block.text);
  } else if (message.type === "result") {
    const refused = message.permission_denials.map((denial) => denial.tool_name);
    console.log(`${message.subtype}, refused: ${JSON.stringify(refused)}`);
    break;
  }
}
