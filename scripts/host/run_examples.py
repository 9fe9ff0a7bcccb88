#!/usr/bin/env python3
"""Runs the examples of the agent SDKs against a scripted model, and checks what they did.

Usage: run_examples.py TOOLGATE FAKE_MODEL PYTHON NPM_FOLDER
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

toolgate, fake_model, python, npm = sys.argv[1:5]
examples = Path(__file__).resolve().parent / "examples"


def script(folder):
    """The turns of the model: it reads, writes what it may, and tries what it may not."""

    def call(name, **given):
        return {"tools": [{"name": name, "input": given}]}

    return {
        "turns": [
            call("Read", file_path=f"{folder}/notes.txt"),
            call("Write", file_path=f"{folder}/review.md", content="Short and clear.\n"),
            call("Write", file_path=f"{folder}/other.txt", content="x"),
            {"text": "Reviewed."},
        ]
    }


def check(name, command, base):
    """Runs one example in a folder of its own."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top).resolve() / "work"
        folder.mkdir()
        (folder / "notes.txt").write_text("Buy milk.\n")
        world = f"{base}/s/{name.replace('.', '-')}"
        put = urllib.request.Request(f"{world}/_script", json.dumps(script(folder)).encode(), method="PUT")
        urllib.request.urlopen(put, timeout=30).close()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": top,
            "TOOLGATE_STATE_DIR": f"{top}/state",
            "ANTHROPIC_BASE_URL": world,
            "ANTHROPIC_API_KEY": "sk-test",
            "AGENT_SDK_DIR": npm,
        }
        ran = subprocess.run(
            [*command, str(examples / name), toolgate, str(folder)],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )
        with urllib.request.urlopen(f"{world}/_requests", timeout=30) as answer:
            seen = json.load(answer)
        review = folder / "review.md"
        held = {
            "it ended well": ran.returncode == 0,
            "the answer was printed": "Reviewed." in ran.stdout,
            "the refusal was told": "success, refused:" in ran.stdout and "Write" in ran.stdout.splitlines()[-1],
            "the review was written": review.exists() and review.read_text() == "Short and clear.\n",
            "nothing else was written": not (folder / "other.txt").exists(),
            "the model saw the file": any("Buy milk." in json.dumps(r["body"]) for r in seen["requests"]),
            "the protocol was kept": not seen["violations"],
        }
    failed = [what for what, holds in held.items() if not holds]
    print(f"example {name}: {'ok' if not failed else 'FAILED: ' + ', '.join(failed)}")
    if failed:
        print(ran.stdout, ran.stderr, sep="\n", file=sys.stderr)
    return not failed


server = subprocess.Popen([sys.executable, fake_model], stdout=subprocess.PIPE, text=True)
try:
    url = json.loads(server.stdout.readline())["url"]
    results = [check("review.py", [python], url), check("review.mjs", ["node"], url)]
finally:
    server.kill()
    server.wait()
sys.exit(0 if all(results) else 1)
