"""A local chat server that answers from a script and misbehaves as told."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(content, finish="stop", refusal=None):
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return 200, {
        "id": "c", "object": "chat.completion", "created": 0, "model": "toy",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }  # fmt: skip


def error(status, code=None):
    return status, {"error": {"message": "no", "code": code, "type": "x", "param": None}}


class Server:
    """Answers from a script of replies (the last repeats) and remembers what it was sent."""

    def __init__(self, script, delay_s=0.0):
        self.script, self.delay_s = list(script), delay_s
        self.bodies, self.keys, self.times = [], [], []
        self.in_flight, self.most_in_flight, self.lock = 0, 0, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.answer(self)

            def log_message(self, *_arguments):
                pass

        backlog = type("Backlog", (ThreadingHTTPServer,), {"request_queue_size": 128})
        self.http = backlog(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self.lock:
            self.bodies.append(body)
            self.keys.append(handler.headers["authorization"])
            self.times.append(time.monotonic())
            step = self.script[min(len(self.bodies), len(self.script)) - 1]
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        time.sleep(self.delay_s)
        with self.lock:
            self.in_flight -= 1
        if step == "hang":
            time.sleep(1.5)
            return
        status, payload, headers = (*step, {})[:3]
        content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}/v1"

    def close(self):
        self.http.shutdown()
        self.http.server_close()
