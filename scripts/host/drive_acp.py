#!/usr/bin/env python3
"""Drives the agent as editors do: with the ACP client library for Python, against a scripted model.

Usage: drive_acp.py TOOLGATE FAKE_MODEL [--adapter NPM_FOLDER] [--only NAMES]
Without --adapter the library drives `toolgate acp`.  With it, it drives the published adapter
(@agentclientprotocol/claude-agent-acp), whose CLAUDE_CODE_EXECUTABLE is toolgate.
Run it with an interpreter that has agent-client-protocol (scripts/host/install.sh … python scripts/host/acp).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import traceback
import urllib.request
from pathlib import Path

import acp
from acp import schema

SCENARIOS = {}
OPTIONS = [{"label": "SQLite", "description": "a file"}, {"label": "Postgres", "description": "a server"}]
ASK = {"tools": [{"name": "AskUserQuestion", "input": {"questions": [
    {"question": "Which database?", "header": "Database", "options": OPTIONS, "multiSelect": False}]}}]}


def scenario(script, adapter=True):
    """Registers a scenario with the turns of its model; `adapter`: the published adapter is driven through it too."""
    def register(function):
        SCENARIOS[function.__name__] = (function, script, adapter)
        return function
    return register


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class Editor(acp.Client):
    """What an editor sees, and how it answers."""

    def __init__(self, choice="allow_once"):
        self.choice, self.updates, self.questions, self.forms = choice, [], [], []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append((tool_call, options))
        if self.choice is None:
            await asyncio.sleep(3600)
        wanted = next((option for option in options if option.kind == self.choice), None)
        outcome = {"outcome": "selected", "optionId": wanted.option_id} if wanted else {"outcome": "cancelled"}
        return schema.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def create_elicitation(self, message, mode, **_):
        form = mode.model_dump(by_alias=True, exclude_none=True)
        self.forms.append((message, form))
        schema_of = form.get("requestedSchema") or form["requested_schema"]
        field = next(iter(schema_of["properties"]))
        return schema.AcceptElicitationResponse.model_validate({"action": "accept", "content": {field: "Postgres"}})

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        return schema.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, session_id, path, content, **_):
        raise acp.RequestError.method_not_found("fs/write_text_file")

    def texts(self, kind="agent_message_chunk"):
        return "".join(getattr(update.content, "text", "") for update in self.updates if update.session_update == kind)

    def of_kind(self, kind):
        return [update.model_dump(by_alias=True, exclude_none=True) for update in self.updates if update.session_update == kind]


class Stage:
    """A directory, a script of the model, and the program that is driven."""

    def __init__(self, name, args, script):
        self.args, self.top = args, tempfile.TemporaryDirectory(prefix="drive-acp-")
        root = Path(self.top.name).resolve()
        self.cwd = root / "work"
        self.cwd.mkdir()
        (self.cwd / "in.txt").write_text("the word is tangerine\n")
        self.base = f"{args.url}/s/{name}-{'adapter' if args.adapter else 'own'}"
        self.play(script)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(root), "TOOLGATE_STATE_DIR": str(root / "state"),
            "TOOLGATE_SANDBOXED": "1", "ANTHROPIC_BASE_URL": self.base, "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_MODEL": "claude-sonnet-5", "CLAUDE_CONFIG_DIR": str(root / "config"),
        }

    def play(self, script):
        text = json.dumps(script).replace("{cwd}", str(self.cwd))
        urllib.request.urlopen(urllib.request.Request(f"{self.base}/_script", text.encode(), method="PUT"), timeout=30).close()

    def seen(self):
        with urllib.request.urlopen(f"{self.base}/_requests", timeout=30) as answer:
            return json.load(answer)

    def requests(self):
        """The requests of the main loop."""
        return [request["body"] for request in self.seen()["requests"] if request["body"].get("tools")]

    def start(self, editor):
        if self.args.adapter:
            package = Path(self.args.adapter) / "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"
            command, env = ["node", str(package)], {**self.env, "CLAUDE_CODE_EXECUTABLE": self.args.toolgate}
        else:
            command, env = [self.args.toolgate, "acp"], self.env
        stderr = None if self.args.verbose else subprocess.DEVNULL
        return acp.spawn_agent_process(editor, *command, env=env, cwd=self.cwd, use_unstable_protocol=True,
                                       transport_kwargs={"stderr": stderr})

    async def connect(self, connection):
        capabilities = schema.ClientCapabilities.model_validate({
            "fs": {"readTextFile": True, "writeTextFile": False}, "elicitation": {"form": {}},
        })
        answer = await connection.initialize(acp.PROTOCOL_VERSION, client_capabilities=capabilities)
        check(answer.protocol_version == acp.PROTOCOL_VERSION, f"version {answer.protocol_version}")
        return answer

    async def session(self, connection):
        await self.connect(connection)
        return (await connection.new_session(cwd=str(self.cwd), mcp_servers=[])).session_id


async def prompt(connection, session, text):
    return (await connection.prompt(session_id=session, prompt=[acp.text_block(text)])).stop_reason


WRITE = {"tools": [{"name": "Write", "input": {"file_path": "{cwd}/out.txt", "content": "written\n"}}]}


@scenario({"turns": [{"text": "Hello from the script."}]})
async def text(stage):
    editor = Editor()
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        check(await prompt(connection, session, "hello") == "end_turn", "stop reason")
        check(editor.texts() == "Hello from the script.", f"text {editor.texts()!r}")


@scenario({"turns": [WRITE, {"text": "Done."}]})
async def permission_and_diff(stage):
    editor = Editor("allow_once")
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        check(await prompt(connection, session, "write it") == "end_turn", "stop reason")
    check((stage.cwd / "out.txt").read_text() == "written\n", "the file")
    check(len(editor.questions) == 1, f"{len(editor.questions)} questions")
    calls = editor.of_kind("tool_call") + editor.of_kind("tool_call_update")
    diffs = [part for call in calls for part in call.get("content") or [] if part.get("type") == "diff"]
    check(any(diff["newText"] == "written\n" for diff in diffs), f"no diff in {calls}")
    check(any(call.get("status") == "completed" for call in calls), "the call is not completed")


@scenario({"turns": [WRITE, {"text": "I may not."}]})
async def rejection(stage):
    editor = Editor("reject_once")
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        await prompt(connection, session, "write it")
    check(not (stage.cwd / "out.txt").exists(), "the file was written")
    check(any(call.get("status") == "failed" for call in editor.of_kind("tool_call_update")), "the call did not fail")


@scenario({"turns": [{"text": "This answer hangs in the middle.", "hang_after": 1}, {"text": "Back."}]})
async def cancel(stage):
    editor = Editor()
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        turn = asyncio.create_task(prompt(connection, session, "hang"))
        while not stage.requests():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        await connection.cancel(session_id=session)
        check(await asyncio.wait_for(turn, 20) == "cancelled", "stop reason")
        check(await prompt(connection, session, "and now?") == "end_turn", "the next turn")
        check("Back." in editor.texts(), editor.texts())


@scenario({"turns": [WRITE, {"text": "Written."}]})
async def mode(stage):
    editor = Editor(None)
    async with stage.start(editor) as (connection, _):
        await stage.connect(connection)
        created = await connection.new_session(cwd=str(stage.cwd), mcp_servers=[])
        check("acceptEdits" in [known.id for known in created.modes.available_modes], f"{created.modes}")
        await connection.set_session_mode(session_id=created.session_id, mode_id="acceptEdits")
        await asyncio.wait_for(prompt(connection, created.session_id, "write"), 30)
    check((stage.cwd / "out.txt").exists() and not editor.questions, "edits are free in this mode")


@scenario({"turns": [ASK, {"text": "Postgres it is."}]})
async def question(stage):
    editor = Editor("allow_once")
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        await prompt(connection, session, "choose")
    check(len(editor.forms) == 1 and "Which database?" in json.dumps(editor.forms), f"forms {editor.forms}")
    check("Postgres" in json.dumps(stage.requests()[1]["messages"][-1]), "the answer did not reach the model")


@scenario({"turns": [{"text": "First."}, {"text": "Again."}, {"text": "Once more."}]}, adapter=False)
async def list_load_and_resume(stage):
    editor = Editor()
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        await prompt(connection, session, "remember the tangerine")
    editor = Editor()
    async with stage.start(editor) as (connection, _):
        await stage.connect(connection)
        listed = (await connection.list_sessions(cwd=str(stage.cwd))).sessions
        check([(entry.session_id, entry.title) for entry in listed] == [(session, "remember the tangerine")], f"{listed}")
        await connection.load_session(cwd=str(stage.cwd), session_id=session, mcp_servers=[])
        check("tangerine" in editor.texts("user_message_chunk"), "the conversation is told again")
        await prompt(connection, session, "what was it?")
    editor = Editor()
    async with stage.start(editor) as (connection, _):
        await stage.connect(connection)
        await connection.resume_session(session_id=session, cwd=str(stage.cwd), mcp_servers=[])
        check(not editor.texts("user_message_chunk"), "a resumed session is not told again")
        await prompt(connection, session, "and now?")
        check(editor.texts() == "Once more.", editor.texts())
    check("tangerine" in json.dumps(stage.requests()[2]), "the model has the conversation")


@scenario({"turns": [{"tools": [{"name": "TodoWrite", "input": {"todos": [
    {"content": "Write it", "status": "completed", "activeForm": "Writing"},
    {"content": "Test it", "status": "in_progress", "activeForm": "Testing"}]}}]}, {"text": "Planned."}]}, adapter=False)
async def plan(stage):
    editor = Editor("allow_once")
    async with stage.start(editor) as (connection, _):
        session = await stage.session(connection)
        await prompt(connection, session, "plan")
    plans = editor.of_kind("plan")
    check(plans and plans[-1]["entries"][1]["status"] == "in_progress", f"plans {plans}")


async def run_one(name, args):
    function, script, _ = SCENARIOS[name]
    stage, why = Stage(name, args, script), None
    try:
        await asyncio.wait_for(function(stage), args.timeout)
        check(not stage.seen()["violations"], f"the service would refuse: {stage.seen()['violations']}")
    except asyncio.TimeoutError:
        why = f"no end after {args.timeout} s"
    except Exception as error:
        why = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        if args.verbose:
            traceback.print_exc()
    print(f"{'FAIL' if why else 'PASS'} {name}" + (f": {why[:600]}" if why else ""), flush=True)
    stage.top.cleanup()
    return why is None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("toolgate")
    parser.add_argument("fake_model")
    parser.add_argument("--adapter")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=90)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.toolgate = str(Path(args.toolgate).resolve())
    server = subprocess.Popen([sys.executable, args.fake_model], stdout=subprocess.PIPE, text=True)
    try:
        args.url = json.loads(server.stdout.readline())["url"]
        names = [name for name in args.only.split(",") if name]
        names = names or [name for name, (_, _, adapter) in SCENARIOS.items() if adapter or not args.adapter]
        passed = [asyncio.run(run_one(name, args)) for name in names]
    finally:
        server.kill()
        server.wait()
    print(f"{sum(passed)}/{len(passed)} passed ({'claude-agent-acp' if args.adapter else 'toolgate acp'})")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
