"""A reviewer: it reads what it likes, and writes nothing but review.md.

Usage: review.py TOOLGATE FOLDER   (the model is found by the environment, see docs/agent.md)
"""

import asyncio
import sys
from pathlib import Path

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
)


async def decide(tool, given, _context):
    """Is asked where the policy asks, and only there."""
    if tool == "Write" and Path(given["file_path"]).name == "review.md":
        return PermissionResultAllow()
    return PermissionResultDeny(message="only review.md may be written")


async def main(toolgate, folder):
    options = ClaudeAgentOptions(cli_path=toolgate, cwd=folder, can_use_tool=decide)
    async with ClaudeSDKClient(options=options) as client:
        await client.query("Read notes.txt and write a review of it to review.md.")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)
            elif isinstance(message, ResultMessage):
                refused = [denial["tool_name"] for denial in message.permission_denials or []]
                print(f"{message.subtype}, refused: {refused}")


asyncio.run(main(sys.argv[1], sys.argv[2]))
