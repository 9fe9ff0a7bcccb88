#!/usr/bin/env python3
"""Kills the host, the model server or toolgate at random frames of a session, and checks what is left.

Usage: kill_agent.py TOOLGATE [--kills 500] [--seed N] [--verbose]
Each round starts a host program that drives toolgate by the control protocol: text, a write that the host approves, a
command, a subagent.  One of the three is killed (SIGKILL) when a random frame has been seen, plus up to 20 ms.  Then:
  - no process stays: not toolgate, not its commands, not a supervisor;
  - every line of every transcript is whole JSON once the session has been opened again;
  - every call whose result the host has seen is in the ledger, and its hash chain is intact;
  - the session resumes: the model gets a conversation that a real service accepts, and the turn ends well.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SDK_DRIVERS = Path(__file__).resolve().parent / "sdk"
VICTIMS = ["host", "model", "toolgate"]
# No wait for the end of a process takes longer.
END_SECONDS = 30
STREAM = ["run", "--output-format", "stream-json", "--input-format", "stream-json"]


def run_host(toolgate, *args):
    """The host program: drives toolgate, approves its calls, and tells each frame to the script above it."""
    child = subprocess.Popen(
        [toolgate, *STREAM, "--permission-prompt-tool", "stdio", *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True,
    )
    print(json.dumps({"pid": child.pid}), flush=True)

    def send(frame):
        child.stdin.write(json.dumps(frame) + "\n")
        child.stdin.flush()

    try:
        send({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "hooks": {}}})
        send({"type": "user", "message": {"role": "user", "content": "go"}, "parent_tool_use_id": None})
        for line in child.stdout:
            frame = json.loads(line)
            if frame["type"] == "control_request":
                allow = {"behavior": "allow", "updatedInput": frame["request"].get("input")}
                response = {"subtype": "success", "request_id": frame["request_id"], "response": allow}
                send({"type": "control_response", "response": response})
            print(json.dumps({"frame": frame}), flush=True)
            if frame["type"] == "result":
                child.stdin.close()
    except (BrokenPipeError, ValueError):
        pass
    child.wait()


class ModelServer:
    """The scripted model, in a process that can be killed."""

    def __init__(self):
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, str(SDK_DRIVERS / "fake_model.py")], stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def play(self, world, script):
        put = urllib.request.Request(f"{self.url}/s/{world}/_script", json.dumps(script).encode(), method="PUT")
        urllib.request.urlopen(put, timeout=30).close()

    def violations(self, world):
        with urllib.request.urlopen(f"{self.url}/s/{world}/_requests", timeout=30) as answer:
            return json.load(answer)["violations"]


class Arena:
    """The directories of all rounds: one workspace, one state."""

    def __init__(self, toolgate):
        self.toolgate = toolgate
        self.top = tempfile.TemporaryDirectory(prefix="kill-agent-")
        self.root = Path(self.top.name).resolve()
        self.cwd = self.root / "work"
        self.cwd.mkdir()
        self.marker = f"{600 + os.getpid() % 300}.{os.getpid()}"
        self.model = ModelServer()

    def env(self, world):
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.root), "TOOLGATE_STATE_DIR": str(self.root / "state"),
            "TOOLGATE_SANDBOXED": "1", "ANTHROPIC_BASE_URL": f"{self.model.url}/s/{world}", "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_MAX_RETRIES": "1", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
        }

    def script(self, number):
        """Text, calls, a subagent with a call of its own, and the end."""
        def call(name, **given):
            return {"name": name, "input": given}

        write = call("Write", file_path=str(self.cwd / f"w{number}.txt"), content="w\n")
        bash = call("Bash", command=f"echo begun; sleep 0.05; sleep {self.marker} & sleep 0.1; kill $!")
        agent = call("Agent", description="look", prompt="find the word", run_in_background=False)
        inner = call("Write", file_path=str(self.cwd / f"i{number}.txt"), content="i\n")
        return {"lanes": [
            {"when": {"system_contains": "another agent gave you one task"},
             "turns": [{"tools": [inner], "chunk_ms": 1}, {"text": "It is milk."}]},
            {"turns": [
                {"thinking": "A thought.", "text": "A somewhat longer text before the calls.", "tools": [write, bash], "chunk_ms": 2},
                {"text": "Now an agent.", "tools": [agent]},
                {"text": "All is done now."},
            ]},
        ]}

    def toolgate_log(self, *args):
        env = self.env("none")
        return subprocess.run([self.toolgate, "log", *args], cwd=self.cwd, env=env, capture_output=True, text=True,
                              timeout=120, check=False)

    def processes_left(self):
        """Processes that belong to this arena: by the environment that they inherited, or by the marker."""
        wanted, left = str(self.root / "state").encode(), []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if state not in "ZX" and (wanted in environment or self.marker.encode() in command):
                left.append((int(entry.name), command.replace(b"\0", b" ").decode(errors="replace")[:100]))
        return left

    def wait_until_empty(self):
        deadline = time.monotonic() + END_SECONDS
        while left := self.processes_left():
            if time.monotonic() > deadline:
                return left
            time.sleep(0.01)
        return []

    def transcripts(self):
        return list((self.root / "state" / "sessions").rglob("*.jsonl"))


def play_round(arena, number, dice, verbose):
    """One session with one kill.  Gives what is wrong, and what was killed at which frame."""
    victim, at, delay = VICTIMS[number % 3], dice.randrange(0, 34), dice.choice([0, 0, dice.random() * 0.02])
    world = f"round{number}"
    arena.model.play(world, arena.script(number))
    session = str(__import__("uuid").UUID(int=dice.getrandbits(128), version=4))
    host = subprocess.Popen(
        [sys.executable, __file__, "--as-host", arena.toolgate, "--session-id", session], cwd=arena.cwd,
        env={**arena.env(world), "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    seen, results, pid, killed = 0, [], None, None
    for line in host.stdout:
        told = json.loads(line) if line.endswith("\n") else {}
        pid = told.get("pid", pid)
        frame = told.get("frame") or {}
        content = (frame.get("message") or {}).get("content") if frame.get("type") == "user" else []
        results += [block["tool_use_id"] for block in content or [] if isinstance(block, dict) and block.get("type") == "tool_result"]
        if killed is None and seen >= at:
            time.sleep(delay)
            killed = frame.get("type", "start")
            if victim == "host":
                host.kill()
            elif victim == "model":
                arena.model.kill()
            else:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    # It ended by itself in the meantime: nothing was killed in this round.
                    killed, at = None, sys.maxsize
        seen += bool(frame)
    host.wait()
    problems = []
    if left := arena.wait_until_empty():
        problems.append(f"processes stay: {left}")
        for process, _ in left:
            os.kill(process, signal.SIGKILL)
    if victim == "model" and killed:
        arena.model.start()
    problems += check_state(arena, session, results, number)
    if verbose or problems:
        print(f"round {number}: {victim} at frame {at} ({killed}), {seen} frames: {'; '.join(problems) or 'ok'}", flush=True)
    return problems, (victim, killed)


def check_state(arena, session, results, number):
    problems = []
    path = next((path for path in arena.transcripts() if path.stem == session), None)
    if path:
        world = f"resume{number}"
        arena.model.play(world, {"turns": [{"text": "Alive."}]})
        again = subprocess.run(
            [arena.toolgate, "run", "-p", "--output-format", "json", "--resume", session, "again"], cwd=arena.cwd,
            env=arena.env(world), capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
        )
        answer = json.loads(again.stdout) if again.stdout.startswith("{") else {}
        if again.returncode != 0 or answer.get("result") != "Alive.":
            problems.append(f"the session does not resume: {again.stdout[:300]} {again.stderr[:300]}")
        elif violations := arena.model.violations(world):
            problems.append(f"the service would refuse the conversation: {violations}")
        for line in path.read_text().splitlines():
            try:
                json.loads(line)
            except ValueError:
                problems.append(f"a torn line in the transcript: {line[:80]}")
    elif results:
        problems.append("results were seen, and there is no transcript")
    verified = arena.toolgate_log("--verify")
    if verified.returncode != 0:
        problems.append(f"the ledger is not intact: {verified.stdout[:200]}{verified.stderr[:200]}")
    recorded = arena.toolgate_log("--json", "--session", session).stdout if results else ""
    problems += [f"the record of {call} is lost" for call in results if f'"{call}"' not in recorded]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("toolgate")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    arena, dice = Arena(str(Path(args.toolgate).resolve())), random.Random(args.seed)
    failed, kills, number, moments = 0, {name: 0 for name in VICTIMS}, 0, set()
    try:
        # A round whose frame never comes kills nothing, and does not count.
        while sum(kills.values()) < args.kills and number < args.kills * 3:
            problems, (victim, killed) = play_round(arena, number, dice, args.verbose)
            failed += bool(problems)
            kills[victim] += killed is not None
            moments.add((victim, killed))
            number += 1
    finally:
        arena.model.kill()
    print(f"{sum(kills.values())} kills ({', '.join(f'{count} of {name}' for name, count in kills.items())}), "
          f"at {len(moments)} kinds of moments, seed {args.seed}: {failed} rounds with problems")
    return 1 if failed or sum(kills.values()) < args.kills else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-host"]:
        run_host(*sys.argv[2:])
    else:
        sys.exit(main())
