"""Times the first token of one answer. usage: measure.py HERMES [PEER]"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 15


class Model(BaseHTTPRequestHandler):
    """Answers every chat request at once, as a stream, and notes when."""

    protocol_version = "HTTP/1.1"
    asked = sent = 0.0

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"data": [{"id": "stub", "context_length": 128000}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        # The first conversation request counts; titles and the like may follow.
        if not Model.asked:
            Model.asked = time.monotonic()
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
        text = dict(chunk, choices=[{"index": 0, "delta": {"role": "assistant", "content": "PONG"}, "finish_reason": None}])
        last = dict(chunk, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}],
                    usage={"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11})
        if b'"stream"' in body and b'"stream": false' not in body and b'"stream":false' not in body:
            events = [b"data: " + json.dumps(text).encode() + b"\n\n",
                      b"data: " + json.dumps(last).encode() + b"\n\n", b"data: [DONE]\n\n"]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            if not Model.sent:
                Model.sent = time.monotonic()
            for event in events:
                self.wfile.write(event)
                self.wfile.flush()
            self.close_connection = True
        else:
            answer = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "stub",
                                 "choices": [{"index": 0, "finish_reason": "stop",
                                              "message": {"role": "assistant", "content": "PONG"}}],
                                 "usage": last["usage"]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            if not Model.sent:
                Model.sent = time.monotonic()
            self.wfile.write(answer)


def once(program, url):
    """Seconds of the program's own until the answer shows, and until it has ended."""
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "config.yaml"), "w") as file:
            file.write(f"model:\n  default: stub\n  provider: custom\n  base_url: {url}\n"
                       "  api_key: none\n  context_length: 128000\n")
        env = dict(os.environ, HERMES_HOME=home, HOME=home, OPENAI_API_KEY="none", OPENAI_BASE_URL=url)
        Model.asked = Model.sent = 0.0
        begun = time.monotonic()
        child = subprocess.Popen([program, "chat", "-q", "ping"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=home)
        seen = b""
        first = None
        while True:
            part = os.read(child.stdout.fileno(), 4096)
            if not part:
                break
            seen += part
            if first is None and b"PONG" in seen:
                first = time.monotonic()
        errors = child.stderr.read()
        child.wait()
        ended = time.monotonic()
    if first is None:
        sys.exit(f"{program} showed no answer: {seen!r} {errors[-2000:]!r}")
    return (Model.asked - begun) + (first - Model.sent), ended - begun


def measure(name, program, url, rounds):
    once(program, url)
    times = [once(program, url) for _ in range(rounds)]
    first = statistics.median(t[0] for t in times) * 1000
    whole = statistics.median(t[1] for t in times) * 1000
    print(f"{name:<8} first token {first:8.1f} ms of its own, whole process {whole:8.1f} ms (median of {rounds})")
    return first


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    ours = measure("ours", os.path.abspath(sys.argv[1]), url, ROUNDS)
    if len(sys.argv) > 2:
        theirs = measure("peer", os.path.abspath(sys.argv[2]), url, 3)
        print(f"ratio {theirs / ours:.0f} (first token, own time)")


main()
