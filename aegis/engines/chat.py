"""One client for every chat model, hosted or local, behind the OpenAI interface.

The unit is a request: a prompt with its fields filled in and the pydantic model
that its reply must satisfy. Every request ends in one typed outcome, so that
``scheduled = valid + each failure class`` holds in every stage. Replies are kept
by the hash of the request as sent (less the key): a re-run asks nothing and works
offline. Replies can re-identify people, so the cache lies under a run's ``secret/``.

Functions and classes: :class:`ChatClient`, :func:`parse_reply`, :func:`read_models`,
:func:`write_batch`, :func:`read_batch`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pydantic
import yaml

from aegis import engines
from aegis.audio import write_bytes
from aegis.engines import EngineInfo
from aegis.errors import AegisError, EngineUnavailable, ManifestError, ReplyError
from aegis.fields import repeated
from aegis.tables import PROJECT

OUTCOMES = ("valid", "truncated", "refused", "filtered", "malformed", "wrong_ids", "failed")
# A second try may help after these; a refusal or a cut reply is an answer.
_RETRIED = ("malformed", "wrong_ids", "failed")


class ChatStopped(AegisError):
    """No further request may be sent: the quota is used up or ``max_cost`` is reached."""


@dataclass(frozen=True)
class ChatModel:
    """What a model accepts and costs; one entry of ``data_manifests/chat_models.yaml``.

    Prices are in US dollars a million tokens, 0 for a local model.
    """

    name: str
    revision: str
    licence: str
    base_url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    temperature: float | None = 0.0
    seed: int | None = None
    length_parameter: str = "max_completion_tokens"
    extra_body: dict[str, Any] = field(default_factory=dict)
    input_price: float = 0.0
    output_price: float = 0.0

    @property
    def info(self) -> EngineInfo:
        device = self.base_url or "hosted"
        return EngineInfo("chat", self.name, self.revision, self.licence, device, embedded=False)


def read_models(
    path: Path = PROJECT / "data_manifests" / "chat_models.yaml",
) -> dict[str, ChatModel]:
    """The capability table: name -> model."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        return {entry["name"]: ChatModel(**entry) for entry in entries}
    except (TypeError, KeyError) as error:
        raise ManifestError(f"{path.name}: {error}; see ChatModel for the fields") from error


@dataclass(frozen=True)
class ChatRequest:
    """One request; ``ids`` are those that the reply's ``items`` must carry, once each."""

    id: str
    system: str
    user: str
    schema: type[pydantic.BaseModel]
    max_output_tokens: int = 4096
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What became of a request; ``value`` is None unless ``outcome`` is ``"valid"``."""

    id: str
    outcome: str
    value: dict[str, Any] | None
    reason: str | None
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    request_sha256: str
    reply_sha256: str | None
    cached: bool = False


def parse_reply(
    text: str, schema: type[pydantic.BaseModel], ids: Sequence[str] = ()
) -> dict[str, Any]:
    """Parse a reply that must be exactly one JSON object of the schema.

    Fences, prose around the object, several objects, duplicate keys, NaN and unknown
    fields are all refused: what a model did not say is not guessed.

    Raises
    ------
    ReplyError
        ``malformed: ...`` or ``wrong_ids: ...``.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"malformed: {error}") from error
    if not isinstance(found, dict):
        raise ReplyError(f"malformed: a {type(found).__name__}, expected one object")
    try:
        value = schema.model_validate(found, strict=True, extra="forbid").model_dump()
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ReplyError(f"malformed: {place}: {first['msg']}") from error
    if ids:
        _check_ids([item["id"] for item in value["items"]], ids)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("duplicate key")
    return dict(pairs)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _check_ids(given: list[str], expected: Sequence[str]) -> None:
    twice = repeated(given)
    missing, extra = sorted(set(expected) - set(given)), len(set(given) - set(expected))
    if twice or missing or extra:
        raise ReplyError(f"wrong_ids: {len(twice)} twice, missing {missing[:3]}, {extra} extra")


def request_body(model: ChatModel, request: ChatRequest) -> dict[str, Any]:
    """The request as sent to ``/v1/chat/completions``, less the key."""
    import openai

    tool = openai.pydantic_function_tool(request.schema, name="reply")
    body: dict[str, Any] = {
        "model": model.name,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "reply",
                "strict": True,
                "schema": tool["function"]["parameters"],
            },
        },
        model.length_parameter: request.max_output_tokens,
    }
    if model.temperature is not None:
        body |= {"temperature": model.temperature, "top_p": 1}
    if model.seed is not None:
        body["seed"] = model.seed
    return body | model.extra_body


def request_sha256(model: ChatModel, body: dict[str, Any]) -> str:
    """The cache key: what is sent, to which server and revision."""
    sent = json.dumps([model.base_url, model.revision, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(sent.encode()).hexdigest()


@dataclass
class ChatClient:
    """Sends requests with bounded attempts, concurrency and cost.

    Parameters
    ----------
    model
        An entry of the capability table.
    cache
        Folder of kept replies (below a run's ``secret/``).
    max_attempts
        Tries a request, the first included.
    concurrency
        Requests in flight at once.
    max_cost
        US dollars; reaching it stops the campaign, nothing is lost.
    timeout_s
        Of one try.
    offline
        Answer from the cache only; what is not there fails.
    """

    model: ChatModel
    cache: Path
    max_attempts: int = 3
    concurrency: int = 32
    max_cost: float = float("inf")
    timeout_s: float = 120.0
    offline: bool = False
    cost: float = field(default=0.0, init=False)
    _stopped: str | None = field(default=None, init=False)

    def ask(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """Replies in the order of the requests.

        Raises
        ------
        ChatStopped
            Quota or ``max_cost``; replies that came before stay in the cache.
        EngineUnavailable
            The environment variable of the key is not set.
        """
        replies = asyncio.run(self._ask(requests))
        if self._stopped:
            raise ChatStopped(f"{self.model.name}: {self._stopped}; what was answered is kept")
        return replies

    async def _ask(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        queue: asyncio.Queue[tuple[int, ChatRequest]] = asyncio.Queue()
        for pair in enumerate(requests):
            queue.put_nowait(pair)
        replies: dict[int, Reply] = {}
        async with _Connection(self.model, self.timeout_s, self.offline) as connection:

            async def work() -> None:
                while not queue.empty() and self._stopped is None:
                    index, request = queue.get_nowait()
                    replies[index] = await self._one(connection, request)

            # A group cancels its other workers when one meets an error that is not a reply.
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.concurrency, len(requests))):
                    group.create_task(work())
        return [replies[i] for i in sorted(replies)]

    async def _one(self, connection: _Connection, request: ChatRequest) -> Reply:
        body = request_body(self.model, request)
        key = request_sha256(self.model, body)
        path = self.cache / f"{key}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            return replace(_judge(self.model, request, key, kept, kept["attempts"]), cached=True)
        if self.offline:
            return _failed(request, key, "failed: offline and not in the cache", 0)
        reply = _failed(request, key, "failed: not tried", 0)
        for attempt in range(1, self.max_attempts + 1):
            raw = await connection.send(body)
            if raw.get("stop"):
                self._stopped = raw["reason"]
                return _failed(request, key, raw["reason"], attempt)
            reply = _judge(self.model, request, key, raw, attempt)
            engines.count_usage(
                requests=1, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens,
                cost_usd=reply.cost,
            )  # fmt: skip
            self.cost += reply.cost
            if self.cost >= self.max_cost:
                self._stopped = f"max_cost reached ({self.cost:.2f} of {self.max_cost:.2f} USD)"
            if reply.outcome not in _RETRIED or self._stopped or raw.get("final"):
                break
            if attempt < self.max_attempts:
                await asyncio.sleep(raw.get("wait_s") or _backoff(attempt, key))
        if reply.outcome != "failed":
            kept = {**raw, "attempts": reply.attempts, "request": body}
            write_bytes(path, json.dumps(kept, ensure_ascii=False).encode())
        return reply


def _backoff(attempt: int, key: str) -> float:
    """Seconds before the next try: doubling, with jitter that follows from the request."""
    jitter = random.Random(f"{key}{attempt}").random()  # nosec B311 # spreads retries, no secret
    return min(8.0, 0.25 * 2.0**attempt) * (0.5 + jitter / 2)


def _failed(request: ChatRequest, key: str, reason: str, attempts: int) -> Reply:
    return Reply(request.id, "failed", None, reason, attempts, 0, 0, 0.0, key, None)


def _judge(
    model: ChatModel, request: ChatRequest, key: str, raw: dict[str, Any], attempts: int
) -> Reply:
    """Type the outcome of what a server sent."""
    if "error" in raw:
        return _failed(request, key, f"failed: {raw['error']}", attempts)
    text = raw["content"] or ""
    value, reason = None, None
    if raw["refusal"]:
        outcome, reason = "refused", "refused: the model declined"
    elif raw["finish_reason"] == "content_filter":
        outcome, reason = "filtered", "filtered: by the provider"
    elif raw["finish_reason"] == "length":
        outcome, reason = "truncated", "truncated: the reply reached its length limit"
    else:
        try:
            value, outcome = parse_reply(text, request.schema, request.ids), "valid"
        except ReplyError as error:
            reason, outcome = str(error), str(error).split(":")[0]
    cost = raw["input_tokens"] * model.input_price + raw["output_tokens"] * model.output_price
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Reply(
        request.id, outcome, value, reason, attempts, raw["input_tokens"], raw["output_tokens"],
        cost / 1e6, key, digest,
    )  # fmt: skip


class _Connection:
    """The OpenAI client, with its own retries off so that attempts are counted here."""

    def __init__(self, model: ChatModel, timeout_s: float, offline: bool) -> None:
        self.model, self.timeout_s, self.offline = model, timeout_s, offline
        self.client: Any = None

    async def __aenter__(self) -> _Connection:
        if self.offline:
            return self
        import openai

        key = os.environ.get(self.model.key_variable)
        if not key and self.model.base_url is None:
            raise EngineUnavailable(
                f"{self.model.name}: set the environment variable {self.model.key_variable}"
            )
        self.client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self.model.base_url,
            timeout=self.timeout_s,
            max_retries=0,
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self.client is not None:
            await self.client.close()

    async def send(self, body: dict[str, Any]) -> dict[str, Any]:
        """One try: the reply's parts, or ``error`` with ``wait_s``, ``final`` or ``stop``."""
        import openai

        standard = {k: v for k, v in body.items() if k not in self.model.extra_body}
        try:
            done = await self.client.chat.completions.create(
                **standard, extra_body=self.model.extra_body or None
            )
        except openai.APIStatusError as error:
            return _status_error(error)
        except openai.APITimeoutError:
            return {"error": f"no answer within {self.timeout_s:g} s"}
        except openai.APIConnectionError:
            return {"error": "no connection"}
        except (openai.APIError, ValueError) as error:
            return {"error": f"unreadable answer ({type(error).__name__})"}
        if not done.choices:
            return {"error": "a reply without choices"}
        choice, usage = done.choices[0], done.usage
        return {
            "content": choice.message.content,
            "refusal": choice.message.refusal,
            "finish_reason": choice.finish_reason,
            "input_tokens": usage.prompt_tokens if usage else 0,
            "output_tokens": usage.completion_tokens if usage else 0,
        }


def _status_error(error: Any) -> dict[str, Any]:
    """Sort an HTTP error: stop the campaign, give this request up, or wait and try again."""
    code = error.code if isinstance(error.code, str) else ""
    if code == "insufficient_quota" or error.status_code == 401:
        return {"stop": True, "reason": f"HTTP {error.status_code} {code or 'key refused'}"}
    if error.status_code == 400 and code == "content_filter":
        return {"content": "", "refusal": None, "finish_reason": "content_filter",
                "input_tokens": 0, "output_tokens": 0}  # fmt: skip
    if error.status_code not in (408, 409, 429) and error.status_code < 500:
        return {"error": f"HTTP {error.status_code} {code}".strip(), "final": True}
    wait = error.response.headers.get("retry-after", "")
    wait_s = min(float(wait), 120.0) if wait.replace(".", "", 1).isdigit() else None
    return {"error": f"HTTP {error.status_code}", "wait_s": wait_s}


def write_batch(model: ChatModel, requests: Iterable[ChatRequest], path: Path) -> int:
    """Write requests as a Batch API file (JSON lines keyed by request hash); return how many.

    Raises
    ------
    ManifestError
        More than 50,000 requests or 200 MB, the limits of one batch.
    """
    lines = []
    for request in requests:
        body = request_body(model, request)
        lines.append(
            json.dumps(
                {
                    "custom_id": request_sha256(model, body),
                    "method": "POST",
                    "url": "/v1/chat/completions",
                    "body": body,
                },
                ensure_ascii=False,
            )
        )
    content = ("\n".join(lines) + "\n").encode()
    if len(lines) > 50_000 or len(content) > 200_000_000:
        raise ManifestError(
            f"{path.name}: {len(lines)} requests, {len(content)} bytes; split the batch"
        )
    write_bytes(path, content)
    return len(lines)


def read_batch(path: Path, cache: Path) -> int:
    """Put the replies of a Batch API result file into the cache; return how many.

    Lines with an error are left out, so those requests are asked again.
    """
    kept = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            key, response = entry["custom_id"], entry["response"]
        except (ValueError, KeyError, TypeError) as error:
            raise ManifestError(f"{path.name}:{number}: not a batch result ({error})") from error
        if not response or response["status_code"] != 200 or len(key) != 64 or not key.isalnum():
            continue
        choice, usage = response["body"]["choices"][0], response["body"].get("usage") or {}
        raw = {
            "content": choice["message"].get("content"),
            "refusal": choice["message"].get("refusal"),
            "finish_reason": choice["finish_reason"],
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
            "attempts": 1,
        }
        write_bytes(cache / f"{key}.json", json.dumps(raw, ensure_ascii=False).encode())
        kept += 1
    return kept


def account(replies: Iterable[Reply]) -> dict[str, int]:
    """``scheduled = valid + each failure class``: the counts of a stage."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for reply in replies:
        counts[reply.outcome] += 1
    return {"scheduled": sum(counts.values()), **counts}
