#!/usr/bin/env python3
"""Keeps many calls in flight at `toolgate mcp serve` for a long time: no reply may be lost, doubled or wrong, and memory must stay flat.

    scripts/mcp/soak.py [--binary target/release/toolgate] [--seconds 600] [--inflight 64] [--stdio pipe|socketpair]

Exits with 1 where a reply is missing, comes twice or does not hold its file, or where the server grows by more than a quarter after
the first tenth of the time.
"""
import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time

options = argparse.ArgumentParser(description="many calls in flight for a long time")
options.add_argument("--binary", default="target/release/toolgate")
options.add_argument("--seconds", type=float, default=600)
options.add_argument("--inflight", type=int, default=64)
options.add_argument("--stdio", choices=["pipe", "socketpair"], default="pipe")
options = options.parse_args()


def resident(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def request(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


with tempfile.TemporaryDirectory() as top:
    work, home = os.path.join(top, "work"), os.path.join(top, "home")
    os.mkdir(work)
    os.mkdir(home)
    for k in range(64):
        with open(f"{work}/f{k}.txt", "w") as file:
            file.write(f"this is file {k}\n" * 250)
    command = [options.binary, "--setting-sources", "none", "--settings", '{"permissions":{"allow":["Read"]}}']
    command += ["--cwd", work, "mcp", "serve", "--quiet"]
    environment = {"HOME": home, "XDG_STATE_HOME": os.path.join(home, "state"), "PATH": os.environ["PATH"]}
    if options.stdio == "pipe":
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        sink, source = server.stdin.fileno(), server.stdout.fileno()
        close = server.stdin.close
    else:
        (ours_in, theirs_in), (ours_out, theirs_out) = socket.socketpair(), socket.socketpair()
        server = subprocess.Popen(command, stdin=theirs_in, stdout=theirs_out, env=environment)
        theirs_in.close()
        theirs_out.close()
        sink, source = ours_in.fileno(), ours_out.fileno()
        close = ours_in.close
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
    os.write(sink, request(0, "initialize", hello))
    os.write(sink, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    waiting, sent, answered, wrong = {0}, 0, 0, 0
    outgoing, incoming = b"", b""
    started = time.monotonic()
    until, next_look = started + options.seconds, started + options.seconds / 10
    sizes = []
    last_reply = started
    while waiting or time.monotonic() < until:
        now = time.monotonic()
        if now - last_reply > 30:
            break
        while len(waiting) < options.inflight and now < until:
            sent += 1
            waiting.add(sent)
            outgoing += request(sent, "tools/call", {"name": "Read", "arguments": {"file_path": f"{work}/f{sent % 64}.txt"}})
        readable, writable, _ = select.select([source], [sink] if outgoing else [], [], 1)
        if writable:
            outgoing = outgoing[os.write(sink, outgoing[:65536]):]
        if readable:
            piece = os.read(source, 1 << 20)
            if not piece:
                break
            last_reply = now
            *lines, incoming = (incoming + piece).split(b"\n")
            for line in lines:
                reply = json.loads(line)
                number = reply["id"]
                if number not in waiting:
                    wrong += 1
                    continue
                waiting.discard(number)
                answered += 1
                if number and f"this is file {number % 64}\n" not in reply["result"]["content"][0]["text"]:
                    wrong += 1
        if now >= next_look:
            sizes.append(resident(server.pid))
            next_look += options.seconds / 10
    close()
    ended = server.wait(timeout=30)
    grown = bool(sizes) and max(sizes[1:] or sizes) > sizes[0] * 1.25
    print(f"{answered} answers over a {options.stdio} in {options.seconds:.0f} s, {len(waiting)} lost, {wrong} wrong; "
          f"resident kB at each tenth: {sizes}; ended with {ended}")
    sys.exit(1 if waiting or wrong or ended or grown else 0)
