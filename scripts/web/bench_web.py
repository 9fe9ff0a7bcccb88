#!/usr/bin/env python3
"""Prints each number of the web tools beside its bar, measured at the program as an MCP client uses it.

  bench_web.py TOOLGATE [--pages DIR] [--peer PROGRAM] [--only NAME[,NAME]] [--rounds N]

TOOLGATE       the program, a release build
--pages DIR    the pages of `get_pages.py DIR`: without it `markdown` and `references` are left out
--peer PROGRAM `mcp-server-fetch` from PyPI in a virtual environment: without it `flight` has no peer
--only         markdown, references, nesting, bomb, cached, flight, screenshot
Everything is on loopback. Ends with 1 if a bar is missed.
"""
import argparse, collections, gzip, http.server, importlib.util, json, os, socketserver, statistics, subprocess, sys, tempfile, threading, time, urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = b"<!doctype html><title>page</title><style>body{font:16px sans-serif}</style><h1>Title</h1>" + b"<p>A paragraph of text.</p>" * 40
BOMB_BYTES = 300_000_000
NESTED = ["div", "ul", "b", "table", "blockquote", "font", "span"]
missed = []


def report(name, value, bar, is_met, note=""):
    print(f"{name:58} {value:>14}   bar {bar:<12} {'ok' if is_met else 'MISSED'}{'   ' + note if note else ''}", flush=True)
    if not is_met:
        missed.append(name)


class PageServer:
    """Pages by path, from memory; the query does not count."""
    def __init__(self):
        self.pages, self.requests = {}, collections.Counter()
        pages, requests = self.pages, self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                requests[path] += 1
                body, extra = pages.get(path, (b"", {}))
                self.send_response(200 if body else 404)
                for name, value in {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close", **extra}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass
                self.close_connection = True

            def log_message(self, *args):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            request_queue_size, daemon_threads = 256, True
        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def add(self, path, body, **headers):
        self.pages[path] = (body, {name.replace("_", "-"): value for name, value in headers.items()})
        return self.origin + path


class McpServer:
    """A program that serves tools over its standard streams."""
    def __init__(self, command, folder):
        home, project = (os.path.join(folder, name) for name in ("home", "project"))
        for directory in (home, project):
            os.makedirs(directory, exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": home}
        self.process = subprocess.Popen(command, cwd=project, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.next = 0
        self.read(self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}))
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method, params):
        self.next += 1
        self.write({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def line(self):
        line = self.process.stdout.readline()
        assert line, f"the server ended: {self.process.wait()}"
        return line

    def read(self, number):
        while True:
            answer = json.loads(self.line())
            if answer.get("id") == number:
                return answer

    def call(self, tool, **arguments):
        return self.read(self.send("tools/call", {"name": tool, "arguments": arguments}))["result"]

    def memory(self, field):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


def page_of(answer):
    """The text of a page without the mark around it, and whether more of it is left."""
    whole = answer["content"][0]["text"]
    head, _, rest = whole.partition("\n\n")
    word = head.split(" ")[2] if head.startswith("[web content ") else None
    text, found, note = rest.rpartition(f"\n\n[end {word}]")
    return (text, "characters omitted" in note) if word and found else ("", False)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.pages = options, folder, PageServer()
        self.program = os.path.realpath(options.program)
        self.rule = f"WebFetch(domain:127.0.0.1:{self.pages.server.server_port})"

    def toolgate(self):
        return McpServer([self.program, "--allowed-tools", self.rule, "mcp", "serve"], self.folder)

    def convert(self, directory, out):
        """The Markdown of every page of a directory, and the time that each took, the transfer included."""
        server, times = self.toolgate(), {}
        server.call("WebFetch", url=self.pages.add("/warm", SMALL), prompt="x")
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name, "source.html"), "rb") as file:
                self.pages.add("/test/page.html", file.read())
            mark = f"?case={name}"
            url, text = f"{self.pages.origin}/test/page.html{mark}", ""
            while True:
                begin = time.perf_counter()
                answer = server.call("WebFetch", url=url, prompt="x", offset=len(text))
                times.setdefault(name, time.perf_counter() - begin)
                part, is_cut = page_of(answer)
                text += part
                if not part or not is_cut:
                    break
            text = text.replace(urllib.parse.quote(mark, safe="?=&"), "").replace(mark, "").replace(self.pages.origin, "http://fakehost")
            with open(os.path.join(out, name + ".md"), "w", encoding="utf-8") as file:
                file.write(text)
        server.end()
        return times

    def score(self, kind, bars):
        spec = importlib.util.spec_from_file_location("score_markdown", os.path.join(HERE, "score_markdown.py"))
        scorer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scorer)
        directory, out = os.path.join(self.options.pages, kind), os.path.join(self.folder, kind)
        os.makedirs(out)
        times, scores = self.convert(directory, out), {}
        for name in times:
            read = lambda *path: open(os.path.join(*path), encoding="utf-8", errors="replace").read()
            expected, got = read(directory, name, "expected.html"), read(out, name + ".md")
            scores[name] = scorer.score(expected, got)
        for field, bar in bars.items():
            found = {name: score[field] for name, score in scores.items() if field in score}
            worst = ", ".join(f"{name} {value:.2f}" for name, value in sorted(found.items(), key=lambda item: item[1])[:3])
            mean = statistics.mean(found.values())
            report(f"{kind}: {field}, mean of {len(found)} pages", f"{mean:.3f}", f">= {bar}", mean >= bar, f"lowest: {worst}")
        return times

    def markdown(self):
        times = self.score("articles", {"text": 0.985, "shape": 0.975})
        mean, worst = statistics.mean(times.values()) * 1000, max(times, key=times.get)
        report("articles: a page fetched and converted, mean", f"{mean:.1f} ms", "<= 10 ms", mean <= 10)
        report("articles: the slowest page", f"{times[worst] * 1000:.0f} ms", "<= 150 ms", times[worst] <= 0.15, worst)

    def references(self):
        self.score("references", {"text": 0.97, "shape": 0.92})

    def nesting(self):
        server, lost, slowest = self.toolgate(), [], 0
        for tag in NESTED:
            for depth in (2_000, 20_000, 200_000):
                inner = {"ul": "<ul><li>", "table": "<table><tr><td>"}.get(tag, f"<{tag}>")
                url = self.pages.add(f"/deep/{tag}/{depth}", b"<h1>Deep</h1>" + inner.encode() * depth + b"leaf text")
                begin = time.perf_counter()
                answer = server.call("WebFetch", url=url, prompt="x")
                slowest = max(slowest, time.perf_counter() - begin)
                if answer.get("isError"):
                    lost.append(f"{tag} x {depth}")
        report("nesting bombs: pages without an answer", str(len(lost)), "0", not lost, f"slowest {slowest:.2f} s {' '.join(lost)}")
        server.end()

    def bomb(self):
        for label, kind, unit in (("text", "text/plain", b"some words "), ("tags", "text/html", b"<p>some words</p>"), ("prose", "text/html", b"some words of a page ")):
            packed = gzip.compress(unit * (BOMB_BYTES // len(unit)), 6)
            url = self.pages.add(f"/bomb/{label}", packed, Content_Encoding="gzip", Content_Type=kind)
            server, times, grown = self.toolgate(), [], []
            server.call("WebFetch", url=self.pages.add("/warm", SMALL), prompt="x")
            for number in range(self.options.rounds):
                before = server.memory("VmRSS")
                with open(f"/proc/{server.process.pid}/clear_refs", "w") as peak:
                    peak.write("5")
                begin = time.perf_counter()
                answer = server.call("WebFetch", url=f"{url}?{number}", prompt="x", max_length=1000)
                times.append(time.perf_counter() - begin)
                grown.append(server.memory("VmHWM") - before)
                assert page_of(answer)[1], answer
            fastest, most = min(times) * 1000, max(grown) / 1e6
            report(f"a bomb of 300 MB, {label}: time, fastest of {len(times)}", f"{fastest:.0f} ms", "<= 100 ms", fastest <= 100, f"slowest {max(times) * 1000:.0f} ms")
            report(f"a bomb of 300 MB, {label}: memory, most of {len(times)}", f"{most:.1f} MB", "<= 10 MB", most <= 10)
            server.end()

    def cached(self):
        server = self.toolgate()
        body = SMALL * 20
        url = self.pages.add("/cached", body)
        server.call("WebFetch", url=url, prompt="x")
        times = []
        for _ in range(1000):
            begin = time.perf_counter()
            server.send("tools/call", {"name": "WebFetch", "arguments": {"url": url, "prompt": "x"}})
            line = server.line()
            times.append(time.perf_counter() - begin)
        assert page_of(json.loads(line)["result"])[0].startswith("## Title") and self.pages.requests["/cached"] == 1
        p50 = statistics.median(times) * 1e6
        report(f"a cached fetch ({len(body) // 1000} KB page), p50 at the client", f"{p50:.0f} us", "<= 200 us", p50 <= 200, f"fastest {min(times) * 1e6:.0f} us")
        server.end()

    def in_flight(self, server, tool, total, **more):
        """Fetches a second with 64 in flight."""
        body = SMALL
        if self.options.pages:
            with open(os.path.join(self.options.pages, "articles/wikipedia/source.html"), "rb") as file:
                body = file.read()
        url, waiting, sent = self.pages.add("/flight", body), 0, 0
        begin = time.perf_counter()
        for done in range(total):
            while waiting < 64 and sent < total:
                server.send("tools/call", {"name": tool, "arguments": {"url": f"{url}?{tool}{sent}", **more}})
                sent, waiting = sent + 1, waiting + 1
            while True:
                line = server.line()
                if b'"result"' in line:
                    break
            waiting -= 1
        took = time.perf_counter() - begin
        answer = json.loads(line)["result"]
        assert not answer.get("isError"), answer
        return total / took

    def flight(self):
        rates = {"toolgate": [], "peer": []}
        peer = self.options.peer and McpServer([self.options.peer, "--ignore-robots-txt", "--allow-private-ips"], self.folder)
        ours = self.toolgate()
        for _ in range(max(1, self.options.rounds // 3)):
            rates["toolgate"].append(self.in_flight(ours, "WebFetch", 512, prompt="x"))
            if peer:
                rates["peer"].append(self.in_flight(peer, "fetch", 64))
        mine = statistics.median(rates["toolgate"])
        if peer:
            other = statistics.median(rates["peer"])
            report("64 fetches in flight beside mcp-server-fetch", f"{mine / other:.1f} x", ">= 5 x", mine >= 5 * other, f"{mine:.0f}/s and {other:.0f}/s")
            peer.end()
        else:
            print(f"64 fetches in flight: {mine:.0f}/s; no peer")
        ours.end()

    def screenshot(self):
        done = subprocess.run([sys.executable, os.path.join(HERE, "bench_screenshot.py"), self.program, str(self.options.rounds)], capture_output=True, text=True, env={**os.environ, "HOME": self.folder})
        if done.returncode:
            return report("a screenshot beside plain Chromium", "-", "<= 1.2 x", False, done.stderr.strip().splitlines()[-1])
        last = done.stdout.strip().splitlines()[-1].split()
        report("a screenshot beside plain Chromium, median", f"{last[2]} x", "<= 1.2 x", float(last[2]) <= 1.2, f"fastest {last[4]} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--pages")
    parser.add_argument("--peer")
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else ["markdown", "references", "nesting", "bomb", "cached", "flight", "screenshot"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        bench = Bench(options, os.path.realpath(folder))
        for name in names:
            if name in ("markdown", "references") and not options.pages:
                print(f"{name}: left out, because it needs --pages")
                continue
            getattr(bench, name)()
    sys.exit(1 if missed else 0)


main()
