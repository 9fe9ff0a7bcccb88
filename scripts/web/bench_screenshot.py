#!/usr/bin/env python3
"""How long a screenshot takes beside the browser's own, in turn, on the same page of a server on loopback.

  bench_screenshot.py TOOLGATE [ROUNDS]      TOOLGATE is the program; 9 rounds where absent
"""
import http.server, json, shutil, statistics, subprocess, sys, tempfile, threading, time

PAGE = b"<!doctype html><title>page</title><style>body{font:16px sans-serif}</style><h1>Title</h1>" + b"<p>A paragraph of text.</p>" * 40
QUIET = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --window-size=1280,800".split()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.send_header("Content-Length", str(len(PAGE))); self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *args):
        pass


def timed(command):
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, done
    return time.monotonic() - begin


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
browser = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])))
plain, ours = [], []
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 9):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) if sys.version_info >= (3, 10) else tempfile.TemporaryDirectory() as folder:
        plain.append(timed([browser, *QUIET, f"--user-data-dir={folder}/p", f"--screenshot={folder}/s.png", url]))
    ours.append(timed([sys.argv[1], "--allowed-tools", f"WebFetch(domain:127.0.0.1:{server.server_port})", "call", "Screenshot", json.dumps({"url": url})]))
for name, times in (("browser", plain), ("toolgate", ours)):
    print(f"{name:9} median {statistics.median(times):.2f} s  fastest {min(times):.2f} s")
print(f"ratio     median {statistics.median(ours) / statistics.median(plain):.2f}    fastest {min(ours) / min(plain):.2f}")
