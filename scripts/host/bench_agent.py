#!/usr/bin/env python3
"""Prints the numbers of the agent beside their bars, for one binary.

Usage: bench_agent.py TOOLGATE [--only NAME,…] [--rounds N] [--python PYTHON] [--bundled CLI]
  start      process start to the first request on the wire            <= 30 ms
  turn       what the loop adds to a turn beside the model and tools   <= 1 ms
  stream     following a recorded stream of 2 MB/s                     <= 5 % of a core
  subagents  memory with 50 subagents at once                          <= 150 MB
  query      query() of the SDK for Python with one tool call          <= 1/5 of the bundled program

--python names an interpreter that has claude-agent-sdk (scripts/host/install.sh prints its folder); without it
`query` is left out.  --bundled names the program that the SDK brings along; without it only ours is shown.
The model is sdk/fake_model.py, run inside this process so that the moments at which it is asked and has
answered are seen without its own work.
"""

import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

SDK_DRIVERS = Path(__file__).resolve().parent / "sdk"
STREAM_BYTES_PER_SECOND = 2_000_000
STREAM_SECONDS = 6


def load_fake_model():
    """The scripted model, with the moments of each request: `asked` and `answered`."""
    spec = importlib.util.spec_from_file_location("fake_model", SDK_DRIVERS / "fake_model.py")
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    moments = []

    class TimedHandler(fake.Handler):
        # As real services have it: the end of an answer must not wait for an acknowledgement.
        disable_nagle_algorithm = True

        def do_POST(self):
            entry = {"path": self.path, "asked": time.perf_counter()}
            moments.append(entry)
            super().do_POST()
            entry["answered"] = time.perf_counter()

    server = fake.Server(("127.0.0.1", 0), TimedHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return fake, f"http://127.0.0.1:{server.server_address[1]}", moments


FAKE, URL, MOMENTS = load_fake_model()


class World:
    """A directory of its own, a script of its own."""

    def __init__(self, script):
        self.top = tempfile.TemporaryDirectory(prefix="bench-agent-")
        self.root = Path(self.top.name).resolve()
        self.cwd = self.root / "work"
        self.cwd.mkdir()
        (self.cwd / "notes.txt").write_text("Buy milk.\n" * 20)
        self.base = f"{URL}/s/{self.root.name}"
        text = json.dumps(script).replace("{cwd}", str(self.cwd))
        put = urllib.request.Request(f"{self.base}/_script", text.encode(), method="PUT")
        urllib.request.urlopen(put, timeout=30).close()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "TOOLGATE_STATE_DIR": str(self.root / "state"),
            "TOOLGATE_SANDBOXED": "1",
            "ANTHROPIC_BASE_URL": self.base,
            "ANTHROPIC_API_KEY": "sk-test",
        }

    def moments(self):
        return [entry for entry in MOMENTS if self.root.name in entry["path"]]

    def violations(self):
        with urllib.request.urlopen(f"{self.base}/_requests", timeout=30) as answer:
            return json.load(answer)["violations"]

    def run(self, toolgate, *args, **more):
        done = subprocess.run(
            [toolgate, "run", "-p", *args], cwd=self.cwd, env={**self.env, **more.pop("env", {})},
            capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL, **more,
        )
        if done.returncode != 0:
            raise SystemExit(f"the run failed:\n{done.stdout}\n{done.stderr}")
        return done


def report(name, value, unit, bar, verdict):
    print(f"{name:10} {value:>9} {unit:12} bar {bar:18} {'ok' if verdict else 'MISSED'}", flush=True)
    return verdict


def measure_start(args):
    """From just before the process is started to the moment at which the model is asked."""
    times = []
    for _ in range(args.rounds):
        world = World({"turns": [{"text": "Hello."}]})
        started = time.perf_counter()
        world.run(args.toolgate, "hello")
        times.append((world.moments()[0]["asked"] - started) * 1000)
    value = statistics.median(times)
    return report("start", f"{value:.1f}", "ms (median)", "<= 30 ms", value <= 30)


def measure_turn(args):
    """From the end of an answer to the next request: the whole call of `Read` counts as the loop's."""
    turns = 50
    read = {"text": "Reading.", "tools": [{"name": "Read", "input": {"file_path": "{cwd}/notes.txt"}}]}
    gaps = []
    for _ in range(max(1, args.rounds // 4)):
        world = World({"turns": [read] * turns + [{"text": "Done."}]})
        world.run(args.toolgate, "read it often")
        seen = world.moments()
        assert len(seen) == turns + 1 and not world.violations(), (len(seen), world.violations())
        gaps += [(after["asked"] - before["answered"]) * 1000 for before, after in zip(seen, seen[1:])]
    value = statistics.median(gaps)
    return report("turn", f"{value:.2f}", "ms (median)", "<= 1 ms", value <= 1)


def recorded_stream(size):
    """The bytes of an answer of the scripted model, as long as `size`."""
    turn = FAKE.prepare({"text": "word " * (size // 50)})
    parts, total = [], 0
    for name, data, is_delta in FAKE.anthropic_events(turn, {"model": "m"}):
        part = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
        if is_delta and total >= size:
            continue
        total += len(part)
        parts.append(part)
    return parts


def serve_stream(parts, bytes_per_second):
    """Plays a recorded stream at an even pace, to every connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def play(connection):
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            while len(body) < length:
                body += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            begun, sent, buffer = time.perf_counter(), 0, b""
            for part in parts:
                buffer += part
                if len(buffer) >= bytes_per_second // 100:
                    connection.sendall(buffer)
                    sent, buffer = sent + len(buffer), b""
                    wait = begun + sent / bytes_per_second - time.perf_counter()
                    if wait > 0:
                        time.sleep(wait)
            connection.sendall(buffer)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=play, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def cpu_of(toolgate, world, env, *args):
    """Seconds of processor time and of the clock for one run."""
    before, started = os.times(), time.perf_counter()
    world.run(toolgate, *args, env=env)
    after = os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return busy, time.perf_counter() - started


def measure_stream(args):
    """Processor time while a stream is followed, less that of a run with a short answer."""
    parts = recorded_stream(STREAM_BYTES_PER_SECOND * STREAM_SECONDS)
    size = sum(map(len, parts))
    held = True
    for name, more in [("stream", ()), ("  (frames)", ("--output-format", "stream-json", "--include-partial-messages"))]:
        world = World({"turns": []})
        short, _ = cpu_of(args.toolgate, world, {"ANTHROPIC_BASE_URL": serve_stream(recorded_stream(500), 10**6)}, *more, "go")
        busy, took = cpu_of(
            args.toolgate, world, {"ANTHROPIC_BASE_URL": serve_stream(parts, STREAM_BYTES_PER_SECOND)}, *more, "go"
        )
        rate, share = size / took / 1e6, (busy - short) / took * 100
        ok = report(name, f"{share:.1f}", f"% at {rate:.2f} MB/s", "<= 5 % at 2 MB/s", share <= 5 and rate > 1.8)
        held = held and ok
    return held


def process_tree_memory(pid):
    """The most that the process has had, and what its descendants have now, in MB."""
    def field(of, name):
        try:
            for line in Path(f"/proc/{of}/status").read_text().splitlines():
                if line.startswith(name):
                    return int(line.split()[1]) / 1024
        except (FileNotFoundError, ProcessLookupError):
            pass
        return 0.0

    children, todo = [], [pid]
    while todo:
        try:
            found = [int(child) for task in Path(f"/proc/{todo.pop()}/task").iterdir()
                     for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        children += found
        todo += found
    return field(pid, "VmHWM"), sum(field(child, "VmRSS") for child in children)


def measure_subagents(args):
    """The memory of the process, and of its children, while 50 subagents wait for their model."""
    count = 50
    agent = {"name": "Agent", "input": {"description": "look", "prompt": "find the word", "run_in_background": False}}
    read = {"tools": [{"name": "Read", "input": {"file_path": "{cwd}/notes.txt"}}]}
    world = World({"lanes": [
        {"when": {"system_contains": "another agent gave you one task"},
         "turns": [read] * count + [{"text": "It is milk.", "delay_ms": 10000}] * count},
        {"turns": [{"tools": [agent] * count}, {"text": "Thanks."}]},
    ]})
    env = {**world.env, "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": str(count)}
    child = subprocess.Popen(
        [args.toolgate, "run", "-p", "--allowedTools", "Agent", "--", "go"], cwd=world.cwd, env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )
    own, others = 0.0, 0.0
    while child.poll() is None:
        now = process_tree_memory(child.pid)
        own, others = max(own, now[0]), max(others, now[1])
        time.sleep(0.05)
    assert child.stdout.read().strip() == "Thanks." and not world.violations(), world.violations()
    seen = world.moments()
    slow = [entry for entry in seen if entry["answered"] - entry["asked"] > 9]
    together = max(sum(1 for other in slow if other["asked"] <= entry["asked"] < other["answered"]) for entry in slow)
    total = own + others
    print(f"           ({together} of {count} waited for the model at the same moment)")
    return report("subagents", f"{total:.0f}", "MB at most", "<= 150 MB", total <= 150 and together == count)


QUERY = """
import asyncio, sys, time
from claude_agent_sdk import ClaudeAgentOptions, query
async def main():
    options = ClaudeAgentOptions(cli_path=sys.argv[1], cwd=sys.argv[2], model="claude-sonnet-5", allowed_tools=["Read"])
    started = time.perf_counter()
    async for message in query(prompt="read it", options=options):
        last = message
    print(time.perf_counter() - started)
    assert not last.is_error, last
asyncio.run(main())
"""


def query_times(args, program, rounds):
    times = []
    for _ in range(rounds):
        read = {"tools": [{"name": "Read", "input": {"file_path": "{cwd}/notes.txt"}}]}
        world = World({"lanes": [{"when": {"has_tool": "Read"}, "turns": [read, {"text": "Done."}]},
                                 {"turns": [{"text": "ok"}] * 9}]})
        env = {**world.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        done = subprocess.run([args.python, "-c", QUERY, program, str(world.cwd)], env=env, capture_output=True, text=True,
                              timeout=120, check=False)
        if done.returncode != 0:
            print(f"           ({program}: {done.stderr.strip().splitlines()[-1:]})")
            return None
        times.append(float(done.stdout.split()[-1]) * 1000)
    return statistics.median(times)


def measure_query(args):
    if not args.python:
        print("query      left out: give --python, an interpreter with claude-agent-sdk")
        return True
    ours = query_times(args, args.toolgate, args.rounds)
    theirs = query_times(args, args.bundled, max(2, args.rounds // 4)) if args.bundled else None
    if ours is None:
        return report("query", "failed", "", "", False)
    if theirs is None:
        return report("query", f"{ours:.0f}", "ms (median)", "(only ours)", True)
    return report("query", f"{ours:.0f}", f"ms of {theirs:.0f}", "<= 1/5", ours * 5 <= theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("toolgate")
    parser.add_argument("--only", default="start,turn,stream,subagents,query")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--python")
    parser.add_argument("--bundled")
    args = parser.parse_args()
    args.toolgate = str(Path(args.toolgate).resolve())
    names = args.only.split(",")
    held = [globals()[f"measure_{name}"](args) for name in names]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
