"""The chat client against a local server that misbehaves in every way it must survive."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from pydantic import BaseModel

from aegis.engines import chat
from aegis.errors import EngineUnavailable, ManifestError, ReplyError


class Item(BaseModel):
    id: str
    label: Literal["preserved", "missing"]


class Verdicts(BaseModel):
    items: list[Item]


GOOD = {"items": [{"id": "f1", "label": "preserved"}, {"id": "f2", "label": "missing"}]}


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


@pytest.fixture
def serve():
    servers = []

    def start(*script, delay_s=0.0):
        servers.append(Server(script, delay_s))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(chat, "_backoff", lambda attempt, key: 0.01)
    monkeypatch.setenv("AEGIS_LOCAL_KEY", "secret-of-the-test")

    def make(server, **options):
        model = chat.ChatModel(
            "toy", "r1", "none", base_url=server.url, key_variable="AEGIS_LOCAL_KEY",
            seed=7, length_parameter="max_tokens", input_price=1.0, output_price=2.0,
            extra_body={"chat_template_kwargs": {"t": False}},
        )  # fmt: skip
        return chat.ChatClient(model, tmp_path / "cache", **{"timeout_s": 0.6, **options})

    return make


def request(number=0, ids=("f1", "f2")):
    return chat.ChatRequest(f"q{number}", "system", f"user {number}", Verdicts, 256, ids)


def test_a_valid_reply_is_priced_hashed_and_kept(serve, client):
    server = serve(completion(json.dumps(GOOD)))
    one = client(server)
    reply = one.ask([request()])[0]
    assert (reply.outcome, reply.value, reply.attempts) == ("valid", GOOD, 1)
    assert reply.cost == pytest.approx((100 * 1.0 + 10 * 2.0) / 1e6)
    body = server.bodies[0]
    assert body["temperature"] == 0.0
    assert body["seed"] == 7
    assert body["max_tokens"] == 256
    assert body["chat_template_kwargs"] == {"t": False}
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    again = client(server, offline=True).ask([request()])[0]
    assert (again.outcome, again.cached, again.value) == ("valid", True, GOOD)
    assert len(server.bodies) == 1
    kept = "".join(path.read_text() for path in one.cache.iterdir())
    assert "secret-of-the-test" not in kept


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("```json\n" + json.dumps(GOOD) + "\n```", "malformed"),
        ("```json\n" + json.dumps(GOOD), "malformed"),
        ("Here it is: " + json.dumps(GOOD), "malformed"),
        (json.dumps(GOOD) * 2, "malformed"),
        (json.dumps([GOOD]), "malformed"),
        ('{"items": [], "items": []}', "malformed"),
        ('{"items": [{"id": "f1", "label": NaN}]}', "malformed"),
        ('{"items": [{"id": "f1", "label": "maybe"}]}', "malformed"),
        (json.dumps(GOOD | {"note": "x"}), "malformed"),
        ("", "malformed"),
        (" \n" * 5000, "malformed"),
        (json.dumps({"items": GOOD["items"][:1]}), "wrong_ids"),
        (json.dumps({"items": GOOD["items"][:1] * 2}), "wrong_ids"),
        (json.dumps({"items": [*GOOD["items"], {"id": "f9", "label": "missing"}]}), "wrong_ids"),
    ],
)
def test_bad_replies_are_typed_and_tried_again(serve, client, content, outcome):
    server = serve(completion(content))
    reply = client(server).ask([request()])[0]
    assert (reply.outcome, reply.value, reply.attempts) == (outcome, None, 3)
    assert reply.reason.startswith(outcome + ":")
    server = serve(completion(content), completion(json.dumps(GOOD)))
    assert client(server).ask([request(1)])[0].outcome == "valid"


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (completion('{"items": [', finish="length"), "truncated"),
        (completion(json.dumps(GOOD), finish="length"), "truncated"),
        (completion(None, refusal="I cannot"), "refused"),
        (completion("", finish="content_filter"), "filtered"),
        (error(400, "content_filter"), "filtered"),
    ],
)
def test_answers_that_are_no_verdict_are_not_tried_again(serve, client, step, outcome):
    server = serve(step)
    reply = client(server).ask([request()])[0]
    assert (reply.outcome, reply.value, reply.attempts, len(server.bodies)) == (
        outcome,
        None,
        1,
        1,
    )


@pytest.mark.parametrize("step", [error(500), error(503), error(429), "hang", (200, b"{not json")])
def test_passing_faults_are_survived(serve, client, step):
    server = serve(step, completion(json.dumps(GOOD)))
    reply = client(server).ask([request()])[0]
    assert (reply.outcome, reply.attempts) == ("valid", 2)


def test_lasting_faults_end_after_bounded_attempts(serve, client):
    server = serve(error(500))
    one = client(server)
    reply = one.ask([request()])[0]
    assert (reply.outcome, reply.attempts, len(server.bodies)) == ("failed", 3, 3)
    assert "HTTP 500" in reply.reason
    assert not list(one.cache.glob("*.json"))
    server = serve(error(422))
    assert client(server).ask([request()])[0].attempts == 1


def test_retry_after_is_obeyed(serve, client):
    server = serve((*error(429), {"retry-after": "0.4"}), completion(json.dumps(GOOD)))
    assert client(server).ask([request()])[0].outcome == "valid"
    assert server.times[1] - server.times[0] >= 0.4


@pytest.mark.parametrize("step", [error(429, "insufficient_quota"), error(401)])
def test_used_up_quota_and_a_bad_key_stop_at_once(serve, client, step):
    server = serve(completion(json.dumps(GOOD)), step)
    one = client(server, concurrency=1)
    with pytest.raises(chat.ChatStopped, match="what was answered is kept"):
        one.ask([request(n) for n in range(6)])
    assert len(server.bodies) == 2
    assert len(list(one.cache.glob("*.json"))) == 1


def test_max_cost_stops_the_campaign(serve, client):
    server = serve(completion(json.dumps(GOOD)))
    one = client(server, concurrency=1, max_cost=2.5 * 120 / 1e6)
    with pytest.raises(chat.ChatStopped, match="max_cost reached"):
        one.ask([request(n) for n in range(6)])
    assert len(server.bodies) == 3


def test_concurrency_is_used_and_bounded(serve, client):
    server = serve(completion(json.dumps(GOOD)), delay_s=0.5)
    replies = client(server, concurrency=32, timeout_s=10).ask([request(n) for n in range(96)])
    assert [r.id for r in replies] == [f"q{n}" for n in range(96)]
    assert all(r.outcome == "valid" for r in replies)
    assert 24 <= server.most_in_flight <= 32


def test_accounting_identity(serve, client):
    server = serve(completion("x"), completion(json.dumps(GOOD)), error(422))
    replies = client(server, concurrency=1, max_attempts=1).ask([request(n) for n in range(3)])
    counts = chat.account(replies)
    assert counts["scheduled"] == 3 == sum(counts[o] for o in chat.OUTCOMES)
    assert (counts["malformed"], counts["valid"], counts["failed"]) == (1, 1, 1)


def test_offline_never_connects_and_a_missing_key_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = chat.ChatModel("hosted", "r", "terms")
    offline = chat.ChatClient(model, tmp_path, offline=True)
    assert offline.ask([request()])[0].reason == "failed: offline and not in the cache"
    with pytest.raises(EngineUnavailable, match="set the environment variable OPENAI_API_KEY"):
        chat.ChatClient(model, tmp_path).ask([request()])


def test_batch_files_meet_the_cache(tmp_path, serve, client):
    server = serve(completion(json.dumps(GOOD)))
    one = client(server, offline=True)
    requests = [request(n) for n in range(2)]
    assert chat.write_batch(one.model, requests, tmp_path / "batch.jsonl") == 2
    lines = [json.loads(line) for line in (tmp_path / "batch.jsonl").read_text().splitlines()]
    response = {"status_code": 200, "body": completion(json.dumps(GOOD))[1]}
    results = [
        {"custom_id": lines[1]["custom_id"], "response": response},
        {"custom_id": lines[0]["custom_id"], "response": None, "error": {"code": "x"}},
    ]  # fmt: skip
    (tmp_path / "out.jsonl").write_text("\n".join(json.dumps(r) for r in results))
    assert chat.read_batch(tmp_path / "out.jsonl", one.cache) == 1
    assert [r.outcome for r in one.ask(requests)] == ["failed", "valid"]
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ManifestError, match=r"bad\.jsonl:1: not a batch result"):
        chat.read_batch(tmp_path / "bad.jsonl", one.cache)


def test_the_capability_table_is_readable_and_its_faults_are_named(tmp_path):
    models = chat.read_models()
    assert models["Qwen/Qwen3-32B"].extra_body["chat_template_kwargs"] == {
        "enable_thinking": False
    }
    assert models["gpt-5.4"].temperature is None
    (tmp_path / "m.yaml").write_text("- {name: x, revison: y}")
    with pytest.raises(ManifestError, match=r"m\.yaml: .*revison"):
        chat.read_models(tmp_path / "m.yaml")


def test_strict_parser_keeps_the_reason():
    with pytest.raises(ReplyError, match="malformed: duplicate key 'a'"):
        chat.parse_reply('{"a": 1, "a": 2}', Verdicts)
    with pytest.raises(ReplyError, match=r"malformed: items\.0\.label"):
        chat.parse_reply('{"items": [{"id": "a", "label": "x"}]}', Verdicts)
