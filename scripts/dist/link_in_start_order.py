#!/usr/bin/env python3
"""The linker of published binaries: places the functions that a start runs next to each other.

Usage: link_in_start_order.py ARGUMENTS-OF-CC…       (`cargo xtask dist` names it as the linker of `toolgate`)

A start runs a few thousand functions that the linker would scatter over 30 MB of code, and the kernel maps 16 pages of
code at each page fault: that costs a quarter of the time and half of the memory of a start. Which functions these are
is recorded from the program itself: it is linked, run under valgrind, and linked again with the recorded order. Only
the order of functions differs, so the program is the same whatever was recorded.

Environment: TOOLGATE_START_ORDER is a file to which the order is written too, for a look at it.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Bounds one recorded run: valgrind is some fifty times as slow as the program.
MAX_RUN_SECONDS = 300
STRIP_ARGUMENTS = ("-s", "-Wl,-s", "-Wl,--strip-all", "-Wl,--strip-debug")


def main():
    arguments = link_unwinder_statically(sys.argv[1:])
    if "-fuse-ld=lld" not in arguments:
        print("link_in_start_order.py: only lld places functions in an order; linked without one", file=sys.stderr)
        return link(arguments)
    program = os.path.abspath(arguments[arguments.index("-o") + 1])
    # Symbols are what the recording has to name.
    link([argument for argument in arguments if argument not in STRIP_ARGUMENTS])
    with tempfile.TemporaryDirectory() as folder:
        functions = record_functions(program, folder)
        if not functions:
            sys.exit("link_in_start_order.py: valgrind recorded no function of the program")
        order = os.path.join(folder, "order.txt")
        with open(order, "w") as file:
            file.write("\n".join(functions) + "\n")
        if os.environ.get("TOOLGATE_START_ORDER"):
            shutil.copyfile(order, os.environ["TOOLGATE_START_ORDER"])
        # Two functions with one name are no mistake: C has local ones.
        link(arguments + [f"-Wl,--symbol-ordering-file={order}", "-Wl,--no-warn-symbol-ordering"])


def link_unwinder_statically(arguments):
    """libgcc_s has the unwinder only; as a library of its own it costs a start five per cent."""
    static = {"-lgcc_s": ["-l:libgcc_eh.a", "-l:libgcc.a"]}
    return [linked for argument in arguments for linked in static.get(argument, [argument])]


def link(arguments):
    ended = subprocess.run(["cc", *arguments]).returncode
    if ended != 0:
        sys.exit(ended)


def record_functions(program, folder):
    """The functions that typical starts run, each once, those of the first run first."""
    project = os.path.join(folder, "project")
    os.makedirs(project)
    with open(os.path.join(project, "notes.txt"), "w") as file:
        file.write("one\ntwo\n")
    os.makedirs(os.path.join(folder, "home"))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.path.join(folder, "home"),
        "TOOLGATE_STATE_DIR": os.path.join(folder, "state"),
    }
    found = {}
    for number, (arguments, messages) in enumerate(typical_runs(project)):
        profile = os.path.join(folder, f"run{number}.out")
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}", "--demangle=no"]
        text = "".join(json.dumps(message) + "\n" for message in messages)
        subprocess.run([*valgrind, program, *arguments], input=text.encode(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, cwd=project, env=env, timeout=MAX_RUN_SECONDS)
        found.update(dict.fromkeys(read_function_names(profile)))
    return list(found)


def typical_runs(project):
    """Arguments and standard input of each run: a server that lists its tools, then one that is called, then commands."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "start", "version": "1"}}
    opening = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    ]
    notes = os.path.join(project, "notes.txt")
    inputs = [
        ("Read", {"file_path": notes}),
        ("Edit", {"file_path": notes, "old_string": "two", "new_string": "three"}),
        ("Grep", {"pattern": "one", "path": project}),
        ("Glob", {"pattern": "*.txt", "path": project}),
        ("ls", {"path": project}),
    ]
    calls = [
        {"jsonrpc": "2.0", "id": 2 + number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(inputs)
    ]
    serve = ["--permission-mode", "acceptEdits", "mcp", "serve", "--quiet"]
    yield serve, opening
    yield serve, opening + calls
    yield ["call", "Read", json.dumps({"file_path": notes})], []
    yield ["check", "Bash", json.dumps({"command": "ls | sort"})], []
    yield ["tools", "--format", "json"], []


def read_function_names(profile):
    """The names in the lines `fn=(ID) NAME` and `cfn=(ID) NAME`; an ID is named once in a file."""
    with open(profile, errors="replace") as file:
        for line in file:
            named = re.match(r"c?fn=\(\d+\) (\S+)", line)
            if named:
                # A recursive function has its depth behind a quote.
                yield named[1].split("'")[0]


if __name__ == "__main__":
    main()
