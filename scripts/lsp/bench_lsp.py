#!/usr/bin/env python3
"""What the program adds to the answers of a language server: the same questions to the server itself and through
`toolgate mcp serve`, in turn, with the fake server of the tests.

  bench_lsp.py TOOLGATE [QUESTIONS] [FILES]      TOOLGATE is the program; 1000 questions and 500 files where absent
"""
import json, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = os.path.join(HERE, "../../crates/lsp/tests/fake_server.py")


class Direct:
    """The server without toolgate."""
    def __init__(self, folder):
        self.process = subprocess.Popen(["python3", FAKE, "good"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next = 0
        self.ask("initialize", {})

    def send(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def ask(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            length = 0
            while (line := self.process.stdout.readline()) != b"\r\n":
                length = int(line.split(b":")[1])
            answer = json.loads(self.process.stdout.read(length))
            if answer.get("id") == self.next:
                return answer

    def open(self, path):
        document = {"uri": "file://" + path, "version": 1, "text": open(path).read()}
        self.send({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})


class Gated:
    """The same through the program, as an MCP client asks it."""
    def __init__(self, program, folder):
        servers = {"fake": {"command": "python3", "args": [os.path.realpath(FAKE), "good"], "extensionToLanguage": {".fake": "fake"}}}
        home = os.path.join(folder, "home")
        os.makedirs(home, exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": home}
        command = [program, "--trust-workspace", "--settings", json.dumps({"lspServers": servers}), "mcp", "serve"]
        self.process = subprocess.Popen(command, cwd=os.path.join(folder, "project"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next = 0
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.next:
                return answer

    def ask(self, **arguments):
        answer = self.request("tools/call", {"name": "LSP", "arguments": arguments})
        assert not answer["result"].get("isError"), answer
        return answer

    def cpu_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main():
    questions = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        project = os.path.join(folder, "project")
        os.makedirs(project)
        files = [os.path.join(project, f"f{number}.fake") for number in range(count)]
        for file in files:
            with open(file, "w") as out:
                out.write("target and more text\n" * 100)
        direct, gated = Direct(project), Gated(os.path.realpath(sys.argv[1]), folder)
        direct.open(files[0])
        position = {"textDocument": {"uri": "file://" + files[0]}, "position": {"line": 0, "character": 0}}
        hover = {"operation": "hover", "filePath": files[0], "line": 1, "character": 1}
        gated.ask(**hover)
        alone, through = [], []
        for _ in range(questions):
            alone.append(timed(lambda: direct.ask("textDocument/hover", position)))
            through.append(timed(lambda: gated.ask(**hover)))
        alone, through = (statistics.median(times) * 1000 for times in (alone, through))
        print(f"hover at p50: server {alone:.3f} ms, through toolgate {through:.3f} ms, more: {through - alone:.3f} ms (bar 1)")

        def list_directly(file):
            direct.open(file)
            direct.ask("textDocument/documentSymbol", {"textDocument": {"uri": "file://" + file}})
        alone = sum(timed(lambda: list_directly(file)) for file in files)
        through = sum(timed(lambda: gated.ask(operation="documentSymbol", filePath=file)) for file in files)
        print(f"{count} files opened and listed: server {alone:.2f} s, through toolgate {through:.2f} s, more: {through - alone:.2f} s (bar 1)")
        before = gated.cpu_seconds()
        time.sleep(5)
        print(f"5 s with an idle server: {gated.cpu_seconds() - before:.2f} s of processor time (bar 0)")
        for process in (gated.process, direct.process):
            process.stdin.close()
            process.wait(20)


main()
