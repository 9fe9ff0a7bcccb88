"""The Python SDK drives toolgate: drive.py ERA TOOLGATE WORKSPACE [URL].

Over standard streams, or over HTTP where a URL is given; ERA is `legacy` or a version of the protocol."""
import asyncio
import os
import sys

import httpx2
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

era, toolgate, workspace, *url = sys.argv[1:]
arguments = os.environ["SERVE"].split("\n")
passed_on = {name: os.environ[name] for name in ("PATH", "HOME", "TOOLGATE_STATE_DIR")}
asked = []


async def decide(_, params):
    assert "risk  " in params.message and "/usr" in params.message, params.message
    asked.append(params.message)
    return ElicitResult(action="accept", content={"decision": "no" if len(asked) == 1 else "once"})


def server():
    if not url:
        return StdioServerParameters(command=toolgate, args=arguments, env=passed_on)
    headers = {"Authorization": f"Bearer {os.environ['TOOLGATE_MCP_TOKEN']}"}
    return streamable_http_client(url[0], http_client=httpx2.AsyncClient(headers=headers, timeout=30))


async def cancelled(client):
    begun = asyncio.Event()

    async def progress(*_):
        begun.set()

    def notes():
        return len(open(os.environ["CANCELLED"]).readlines())

    before = notes()
    call = asyncio.create_task(client.call_tool("mcp__slow__wait", {"steps": 0}, progress_callback=progress))
    await begun.wait()
    call.cancel()
    try:
        await call
        raise AssertionError("a cancelled call came back")
    except asyncio.CancelledError:
        pass
    while notes() == before:
        await asyncio.sleep(0.02)


async def main():
    async with Client(server(), mode=era, elicitation_callback=decide) as client:
        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        assert names == sorted(names) and "Read" in names and "mcp__slow__wait" in names, names

        read = await client.call_tool("Read", {"file_path": f"{workspace}/notes.txt"})
        assert "remember the milk" in read.content[0].text and not read.is_error, read
        denied = await client.call_tool("Read", {"file_path": f"{workspace}/secret.txt"})
        assert denied.is_error and "secret.txt" in denied.content[0].text, denied
        try:
            await client.call_tool("nope", {})
            raise AssertionError("an unknown tool was called")
        except Exception as error:
            assert getattr(error, "error", error).code == -32602, error

        outside = ("ls", {"path": "/usr"})
        assert (await client.call_tool(*outside)).is_error
        assert not (await client.call_tool(*outside)).is_error
        assert len(asked) == 2, asked

        told = []

        async def progress(done, total, message):
            told.append((done, message))

        done = await client.call_tool("mcp__slow__wait", {"steps": 4}, progress_callback=progress)
        assert done.content[0].text == "4 steps done", done
        # What is said in quick succession is told together.
        said = [line for _, message in told for line in message.splitlines()]
        assert said == ["step 1", "step 2", "step 3", "step 4"] and len(told) > 1, told
        assert all(one < next for (one, _), (next, _) in zip(told, told[1:])), told

        await cancelled(client)
        assert not (await client.call_tool("Read", {"file_path": f"{workspace}/notes.txt"})).is_error


asyncio.run(asyncio.wait_for(main(), 60))
