#!/usr/bin/env python3
"""A language server that behaves as its first argument says. Standard library only.

good       answers definitions, references, hover, symbols; publishes one error per line with `BAD`
Every other behaviour is a fault: see `main`.
"""
import json, os, sys, time

OUT, IN = sys.stdout.buffer, sys.stdin.buffer


def send(message):
    body = json.dumps(message).encode()
    OUT.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    OUT.flush()


def read():
    length = None
    while True:
        line = IN.readline()
        if not line:
            return None
        if line == b"\r\n":
            return json.loads(IN.read(length))
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)


def width(text, unit):
    """The length of a text in the unit of columns."""
    return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2, "utf-32": len(text)}[unit]


def names(text, unit="utf-16"):
    """Every place of the word `target`."""
    for number, line in enumerate(text.split("\n")):
        at = line.find("target")
        while at >= 0:
            column = width(line[:at], unit)
            yield {"start": {"line": number, "character": column}, "end": {"line": number, "character": column + 6}}
            at = line.find("target", at + 6)


class Server:
    def __init__(self, how):
        self.how, self.texts, self.started, self.events, self.reply = how, {}, time.time(), [], None
        self.unit = how if how.startswith("utf-") else "utf-16"

    def problems(self, uri):
        lines = self.texts[uri].split("\n")
        at = lambda n: {"start": {"line": n, "character": 0}, "end": {"line": n, "character": 3}}
        return [{"range": at(n), "severity": 1, "message": "bad: " + line, "code": 7, "source": "fake"} for n, line in enumerate(lines) if "BAD" in line]

    def publish(self, uri, version):
        if self.how in ("mute", "pull", "pull-busy"): return
        if self.how == "slow-diagnostics": time.sleep(3)
        send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": version, "diagnostics": self.problems(uri)}})

    def folder_edits(self, uri, new):
        """Text edits for `target` in every file beside `uri`."""
        folder = os.path.dirname(uri[len("file://"):])
        changes = {}
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".fake"): continue
            path = os.path.join(folder, name)
            try: text = self.texts.get("file://" + path) or open(path).read()
            except OSError: continue
            edits = [{"range": r, "newText": new} for r in names(text)]
            if edits: changes["file://" + path] = edits
        return changes

    def answer(self, method, params):
        how = self.how
        if method == "initialize":
            if how == "hang-start": time.sleep(600)
            if how == "crash-start": sys.stderr.write("cannot load the plugin\n"); sys.exit(3)
            if how == "nonsense-start": return 17
            if how == "wrong-id": return {"jsonrpc": "2.0", "id": "other", "result": {}}
            keys = ["definitionProvider", "referencesProvider", "hoverProvider", "documentSymbolProvider", "workspaceSymbolProvider", "renameProvider", "documentFormattingProvider", "codeActionProvider"]
            encoding = {"positionEncoding": how} if how.startswith("utf-") else {}
            if how.startswith("utf-") and how not in params["capabilities"]["general"]["positionEncodings"]: sys.exit(5)
            return {"capabilities": {**{k: True for k in keys}, **encoding}, "serverInfo": {"name": "fake", "version": "1"}}
        uri = params["textDocument"]["uri"] if params and "textDocument" in params else None
        if how == "crash": sys.exit(4)
        if how == "crash-once" and not os.path.exists(".crashed"):
            open(".crashed", "w").close(); sys.exit(4)
        if how == "hang": time.sleep(600)
        if how == "nonsense": return 17
        if how == "error": return {"error": {"code": 1, "message": "stack trace\n  at somewhere"}}
        if how == "modified" and time.time() - self.started < 1: return {"error": {"code": -32801, "message": "content modified"}}
        if method in ("textDocument/definition", "textDocument/references"):
            found = [{"uri": uri, "range": r} for r in names(self.texts[uri], self.unit)]
            if how == "outside": found += [{"uri": "file:///etc/hostname", "range": found[0]["range"]}, {"uri": "https://example.com/x", "range": found[0]["range"]}, {"uri": uri.rsplit("/", 1)[0] + "/secret.fake", "range": found[0]["range"]}]
            return found
        if method == "textDocument/hover" and how == "apply-edit": return {"contents": json.dumps(self.reply)}
        if method == "textDocument/hover": return {"contents": ["a text", {"language": "fake", "value": "target"}]}
        if method == "textDocument/documentSymbol": return [{"name": "target", "kind": 999, "location": {"uri": uri, "range": r}} for r in names(self.texts[uri])]
        if method == "workspace/symbol" and how == "watch":
            start = {"line": 0, "character": 0}
            return [{"name": "%d-%s" % (e["type"], os.path.basename(e["uri"])), "kind": 12, "location": {"uri": e["uri"], "range": {"start": start, "end": start}}} for e in self.events]
        if method == "workspace/symbol": return None
        if method == "textDocument/diagnostic" and how == "pull-busy": return {"error": {"code": -32802, "message": "busy"}}
        if method == "textDocument/diagnostic" and how == "pull" and params.get("identifier") == "fake-pull": return {"kind": "full", "items": self.problems(uri)}
        if method == "textDocument/rename": return {"changes": self.folder_edits(uri, params["newName"])}
        if method == "textDocument/formatting": return [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "newText": "# formatted\n"}]
        if method == "textDocument/codeAction":
            edit = {"changes": {uri: [{"range": r, "newText": "fixed"} for r in names(self.texts[uri])]}}
            return [{"title": "Fix it", "kind": "quickfix", "isPreferred": True, "edit": edit}, {"title": "Run it", "command": "run", "arguments": []}]
        if method == "shutdown":
            if how == "hang-shutdown": time.sleep(600)
            return None
        return {"error": {"code": -32601, "message": "unknown"}}

    def run(self):
        how = self.how
        if how == "log-lines": OUT.write(b"starting up\nDebugger listening: no\n\n"); OUT.flush()
        if how == "giant-length": OUT.write(b"Content-Length: 99999999999\r\n\r\n"); OUT.flush()
        if how == "bad-length": OUT.write(b"Content-Length: -5\r\n\r\n{}"); OUT.flush()
        if how == "endless-header":
            while True: OUT.write(b"x" * 65536); OUT.flush()
        if how == "bad-json": OUT.write(b"Content-Length: 2\r\n\r\n{]"); OUT.flush()
        if how == "partial": OUT.write(b"Content-Length: 500\r\n\r\n{"); OUT.flush(); sys.exit(0)
        if how == "stderr-flood":
            for _ in range(200): sys.stderr.write("x" * 99999 + "\n")
        if how == "children":
            if os.fork() == 0: os.setsid(); time.sleep(600)
        while True:
            message = read()
            if message is None: return
            method, params = message.get("method"), message.get("params")
            if method == "exit": return
            if method is None and message.get("id") == "e": self.reply = message.get("result")
            if method == "workspace/didChangeWatchedFiles": self.events += params["changes"]
            if method == "initialized":
                if how == "apply-edit": send({"jsonrpc": "2.0", "id": "e", "method": "workspace/applyEdit", "params": {"edit": {"changes": {"file://" + os.getcwd() + "/a.fake": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "newText": "HACKED"}]}}}})
                if how == "ask-flood":
                    for n in range(20000): send({"jsonrpc": "2.0", "id": n, "method": "workspace/configuration", "params": {"items": [{}] * 20}})
                register = lambda method, options: send({"jsonrpc": "2.0", "id": "r", "method": "client/registerCapability", "params": {"registrations": [{"id": "r", "method": method, "registerOptions": options}]}})
                if how == "watch": register("workspace/didChangeWatchedFiles", {"watchers": [{"globPattern": "**/*.fake"}]})
                if how in ("pull", "pull-busy"): register("textDocument/diagnostic", {"identifier": "fake-pull", "interFileDependencies": False, "workspaceDiagnostics": False})
                if how == "warns": send({"jsonrpc": "2.0", "method": "experimental/serverStatus", "params": {"health": "warning", "quiescent": True, "message": "no standard library\ntry installing it"}})
                if how in ("indexing", "crash-indexing"): send({"jsonrpc": "2.0", "method": "$/progress", "params": {"token": 1, "value": {"kind": "begin", "title": "Indexing"}}})
            if method == "textDocument/didOpen":
                document = params["textDocument"]; self.texts[document["uri"]] = document["text"]; self.publish(document["uri"], document["version"])
                if how == "flood":
                    for n in range(50000): send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": {"uri": "file:///x/%d" % n, "diagnostics": []}})
                if how == "crash-indexing": sys.exit(6)
            if method == "textDocument/didChange":
                document = params["textDocument"]; self.texts[document["uri"]] = params["contentChanges"][0]["text"]; self.publish(document["uri"], document["version"])
            if method and "id" in message:
                result = self.answer(method, params)
                if isinstance(result, dict) and "jsonrpc" in result: send(result)
                elif isinstance(result, dict) and "error" in result: send({"jsonrpc": "2.0", "id": message["id"], **result})
                else:
                    if how == "double": send({"jsonrpc": "2.0", "id": message["id"], "result": result})
                    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


Server(sys.argv[1]).run()
