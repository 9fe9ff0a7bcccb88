"""Real consumers take what toolgate gives: definitions and results in each format."""

import json
import os
import subprocess
import sys
import tempfile

# Nothing here may reach the network.
os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False", OPENAI_API_KEY="none")

TOOLGATE = sys.argv[1]
checked = 0


def toolgate(*args, workspace):
    """Runs toolgate and gives what it printed."""
    env = {**os.environ, "TOOLGATE_STATE_DIR": os.path.join(workspace, ".state")}
    done = subprocess.run(
        [TOOLGATE, "--quiet", "--cwd", workspace, *args], capture_output=True, text=True, env=env, check=False
    )
    return json.loads(done.stdout)


def check(what, take):
    """Runs one check; whatever it raises ends the run."""
    global checked
    take()
    checked += 1
    print(f"  ok  {what}")


def main():
    import anthropic.types
    import google.genai.types
    import litellm
    import mcp.types
    import openai.types.chat
    from litellm.llms.anthropic.chat.transformation import AnthropicConfig
    from pydantic import TypeAdapter

    with tempfile.TemporaryDirectory() as workspace:
        with open(os.path.join(workspace, "a.txt"), "w", encoding="utf-8") as file:
            file.write("hello\n")
        for toolset in ["claude", "plain"]:
            tools = {
                form: toolgate("--toolset", toolset, "tools", "--format", form, workspace=workspace)
                for form in ["anthropic", "openai", "gemini", "mcp"]
            }
            check(
                f"{toolset}: the Anthropic SDK's tool parameter",
                lambda: TypeAdapter(list[anthropic.types.ToolParam]).validate_python(tools["anthropic"]),
            )
            check(
                f"{toolset}: the OpenAI SDK's tool parameter",
                lambda: TypeAdapter(
                    list[openai.types.chat.ChatCompletionFunctionToolParam]
                ).validate_python(tools["openai"]),
            )

            def through_litellm():
                answer = litellm.completion(
                    model="openai/gpt-4o",
                    messages=[{"role": "user", "content": "hi"}],
                    tools=tools["openai"],
                    tool_choice="auto",
                    mock_response="hi",
                )
                assert answer.choices[0].message.content == "hi"

            check(f"{toolset}: LiteLLM's request validation", through_litellm)

            def as_litellm_maps():
                mapped, _ = AnthropicConfig()._map_tools(tools["openai"])
                names = [tool["name"] for tool in mapped]
                assert names == [tool["name"] for tool in tools["anthropic"]], names

            check(f"{toolset}: LiteLLM's translation for Anthropic gives our own definitions", as_litellm_maps)
            check(
                f"{toolset}: the Gemini SDK's tool",
                lambda: [google.genai.types.Tool.model_validate(tool) for tool in tools["gemini"]],
            )
            check(
                f"{toolset}: the MCP SDK's tools/list result",
                lambda: mcp.types.ListToolsResult.model_validate(
                    {**tools["mcp"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                ),
            )

        for name, call in {"a result": ["call", "ls"], "a refusal": ["call", "ls", '{"path":1}']}.items():
            result = {
                form: toolgate(*call, "--form", form, "--id", "call_1", workspace=workspace)
                for form in ["anthropic", "openai", "mcp"]
            }
            check(
                f"{name} as the Anthropic SDK's tool_result block",
                lambda: TypeAdapter(anthropic.types.ToolResultBlockParam).validate_python(result["anthropic"]),
            )
            check(
                f"{name} as the OpenAI SDK's tool message",
                lambda: TypeAdapter(openai.types.chat.ChatCompletionToolMessageParam).validate_python(
                    result["openai"]
                ),
            )
            check(
                f"{name} as the MCP SDK's CallToolResult",
                lambda: mcp.types.CallToolResult.model_validate(result["mcp"]),
            )
    print(f"{checked} consumers content")


main()
