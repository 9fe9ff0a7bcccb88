#!/usr/bin/env python3
"""Runs the examples of docs/mcp.md that need a server of another project or do not end by themselves, and compares what
they print with the page. Ids, numbers, times and the width of columns are not compared; "…" stands for any text.

Usage: page.py TOOLGATE PAGE FOLDER SERVER...   (SERVER: the command of the official file system server)
"""
import os
import pathlib
import re
import subprocess
import sys
import time

MAX_SECONDS = 60


def blocks(page, mark):
    return re.findall(rf"^```{mark}\n(.*?)^```$", page, re.M | re.S)


def plain(text):
    text = re.sub(r"\b\d+(\.\d+)? (µs|ms|s)\b", "#", text)
    text = re.sub(r"\b[0-9a-f]{6,}\b|\b\d+\b", "#", text)
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines())


def is_as_shown(shown, printed):
    pattern = re.escape(plain(shown)).replace("…", "(?s:.*)")
    return re.fullmatch(pattern, plain(printed)) is not None


def main():
    toolgate, page, folder, *server = sys.argv[1:]
    page = pathlib.Path(page).read_text()
    home = pathlib.Path(folder).resolve()
    notes = home / "notes"
    notes.mkdir(parents=True)
    (notes / "list.txt").write_text("buy milk\n")
    (notes / "secret.txt").write_text("hush\n")
    settings = next(text for text in blocks(page, "json") if "mcp__files__read_text_file" in text)
    (notes / "settings.json").write_text(settings)
    bin_folder = home / "bin"
    bin_folder.mkdir()
    (bin_folder / "toolgate").symlink_to(os.path.abspath(toolgate))
    env = {"HOME": str(home), "PATH": f"{bin_folder}:{os.environ['PATH']}"}

    def run(command):
        done = subprocess.run(["sh", "-c", command], cwd=notes, env=env, stdin=subprocess.DEVNULL, timeout=MAX_SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = [line for line in done.stdout.splitlines() if not line.startswith("note: ")]
        return done.returncode, "\n".join(lines).replace(str(home), "/home/me")

    def expect(is_right, what, printed):
        if not is_right:
            sys.exit(f"{what}\n{printed}")
        print(f"ok: {what}")

    quoted = " ".join(f"'{word}'" for word in server)
    code, printed = run(f"toolgate mcp add files {quoted} ~/notes")
    expect(code == 0, "toolgate mcp add", printed)
    code, printed = run("toolgate mcp test files")
    expect(code == 0 and "read_text_file" in printed, "toolgate mcp test", printed)

    calls = next(text for text in blocks(page, "console") if "toolgate call mcp__files" in text)
    commands = re.split(r"^\$ ", calls, flags=re.M)[1:]
    for command, shown in (text.split("\n", 1) for text in commands):
        _, printed = run(command.replace("/home/me", str(home)))
        expect(is_as_shown(shown, printed), command, printed)

    served = next(text for text in blocks(page, "console") if "mcp serve --http" in text)
    command, shown = served.removeprefix("$ ").split("\n", 1)
    # A port of its own: another program may use the one of the page.
    command = re.sub(r":\d+", ":0", command)
    log = home / "serve.log"
    with log.open("w") as output:
        process = subprocess.Popen(command.split(), cwd=notes, env=env, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + MAX_SECONDS
        while "serving on" not in log.read_text() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        # The page shortens the token.
        printed = re.sub(r"Bearer \S+`", "Bearer …`", log.read_text())
        expect(is_as_shown(re.sub(r"Bearer \S+`", "Bearer …`", shown), printed), command, printed)
    finally:
        process.terminate()
        process.wait(timeout=MAX_SECONDS)


if __name__ == "__main__":
    main()
