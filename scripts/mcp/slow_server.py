"""A server over standard streams whose one tool takes its time: slow_server.py FILE.

`wait` reports `steps` steps; with `steps` 0 it waits until it is cancelled, and writes to FILE that it was."""
import json
import sys
import threading

lock = threading.Lock()
cancelled = {}


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def wait(ident, params, stop):
    steps = params["arguments"]["steps"]
    token = params.get("_meta", {}).get("progressToken")
    for step in range(1, max(steps, 1) + 1):
        if token is not None:
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": token, "progress": step, "total": max(steps, 2), "message": f"step {step}"}})
        if stop.wait(0.05):
            break
    if steps == 0:
        stop.wait()
        with open(sys.argv[1], "a") as file:
            file.write("cancelled\n")
        return
    send({"jsonrpc": "2.0", "id": ident, "result": {"content": [{"type": "text", "text": f"{steps} steps done"}]}})


for line in sys.stdin:
    message = json.loads(line)
    method, ident, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": ident, "result": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "slow", "version": "1"}}})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"steps": {"type": "integer"}}, "required": ["steps"]}
        send({"jsonrpc": "2.0", "id": ident, "result": {
            "tools": [{"name": "wait", "description": "Takes its time.", "inputSchema": schema}]}})
    elif method == "tools/call":
        cancelled[ident] = threading.Event()
        threading.Thread(target=wait, args=(ident, params, cancelled[ident]), daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.get(params.get("requestId"), threading.Event()).set()
    elif ident is not None and method:
        send({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "method not found"}})
