"""The chat client against a local server that misbehaves in every way it must survive."""

import json
from typing import Literal

import pytest
from chat_server import completion, error
from pydantic import BaseModel

from aegis.engines import chat
from aegis.errors import EngineUnavailable, ManifestError, ReplyError


class Item(BaseModel):
    id: str
    label: Literal["preserved", "missing"]


class Verdicts(BaseModel):
    items: list[Item]


GOOD = {"items": [{"id": "f1", "label": "preserved"}, {"id": "f2", "label": "missing"}]}


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


@pytest.mark.fault("a chat server that fails, is slow or talks nonsense", "one request")
@pytest.mark.parametrize("step", [error(500), error(503), error(429), "hang", (200, b"{not json")])
def test_passing_faults_are_survived(serve, client, step):
    server = serve(step, completion(json.dumps(GOOD)))
    reply = client(server).ask([request()])[0]
    assert (reply.outcome, reply.attempts) == ("valid", 2)


@pytest.mark.fault("a chat server that stays dead", "one request")
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
    with pytest.raises(ReplyError, match="malformed: duplicate key"):
        chat.parse_reply('{"a": 1, "a": 2}', Verdicts)
    with pytest.raises(ReplyError, match=r"malformed: items\.0\.label"):
        chat.parse_reply('{"items": [{"id": "a", "label": "x"}]}', Verdicts)
