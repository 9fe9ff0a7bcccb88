#!/usr/bin/env python3
"""A small OTLP/HTTP collector: prints each trace that it receives as a tree, and the metrics as one line each.

    scripts/otlp-collector.py [PORT]     PORT is 4318 where absent; 0 takes a free one

Listens on loopback only, needs nothing beside Python 3, and ends with Ctrl-C. For looking at what toolgate exports
(docs/telemetry.md); keep traces in a real collector.
"""

import http.server
import struct
import sys


def fields(data):
    """The fields of a protobuf message: (number, value), where a value is an int or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def every(data, number):
    return [value for key, value in fields(data) if key == number]


def first(data, number, default=b""):
    return next(iter(every(data, number)), default)


def attributes(data, number):
    """Attributes as text: key=value."""
    out = []
    for pair in every(data, number):
        value = first(pair, 2)
        shown = "?"
        for key, inner in fields(value):
            shown = inner.decode() if key == 1 else str(inner if isinstance(inner, int) else "?")
        out.append(f"{first(pair, 1).decode()}={shown}")
    return sorted(out)


def fixed64(value):
    return struct.unpack("<Q", value)[0]


def print_traces(body):
    for resource in every(body, 1):
        spans = [span for scope in every(resource, 2) for span in every(scope, 2)]
        service = " ".join(attributes(first(resource, 1), 1))
        roots = [span for span in spans if not first(span, 4)]
        for root in roots:
            print(f"trace {first(root, 1).hex()}  ({service})")
            print_span(root, spans, fixed64(first(root, 7)), 0)


def print_span(span, spans, start, depth):
    begin, end = fixed64(first(span, 7)), fixed64(first(span, 8))
    status = first(first(span, 15), 3, 0)
    mark = "  ERROR" if status == 2 else ""
    name = first(span, 5).decode()
    print(f"{'  ' * depth}{name:<{26 - 2 * depth}} +{(begin - start) / 1e6:.3f} ms  {(end - begin) / 1e6:.3f} ms{mark}")
    for text in attributes(span, 9):
        print(f"{'  ' * depth}    {text}")
    children = [other for other in spans if first(other, 4) == first(span, 2)]
    for child in sorted(children, key=lambda child: fixed64(first(child, 7))):
        print_span(child, spans, start, depth + 1)


def print_metrics(body):
    for resource in every(body, 1):
        for scope in every(resource, 2):
            for metric in every(scope, 2):
                name, unit = first(metric, 1).decode(), first(metric, 3).decode()
                points = [point for kind in (5, 7, 9) for data in every(metric, kind) for point in every(data, 1)]
                for point in points:
                    # The attributes of a histogram's point are field 9, those of a number's point are field 7.
                    is_histogram = bool(every(metric, 9))
                    labels = attributes(point, 9 if is_histogram else 7)
                    if is_histogram:
                        count = fixed64(first(point, 4))
                        total = struct.unpack("<d", first(point, 5))[0]
                        shown = f"count {count}, sum {total:.6g}"
                    else:
                        shown = str(fixed64(first(point, 6)))
                    print(f"metric {name} [{unit}] {shown}  {' '.join(labels)}")


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/traces":
            print_traces(body)
        elif self.path == "/v1/metrics":
            print_metrics(body)
        sys.stdout.flush()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 4318
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Collector)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


main()
