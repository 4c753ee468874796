"""Asking a chat model until its reply keeps the contract of its prompt.

Unit: one request with its check, a function that raises ``ReplyError`` for a value that the
schema allows and the contract does not (evidence that is nowhere in the text, an assertion
listed twice). Such a request is asked again with the broken rule named; what stays invalid
is returned with the reason, never repaired.

Functions: :func:`converse`, :func:`chat_client`, :func:`transcript_text`,
:func:`check_evidence`, :func:`check_unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aegis.engines.chat import ChatClient, ChatRequest, Reply, read_models
from aegis.errors import ParamError, ReplyError

SILENT = frozenset(("missing", "omission", "uncertain"))
"""Labels that need no evidence."""
ATTEMPTS = 3
"""A request is asked at most this often while its reply breaks the contract."""
Check = Callable[[dict[str, Any]], None]


def converse(
    client: ChatClient,
    requests: Sequence[ChatRequest],
    checks: Sequence[Check],
    attempts: int,
) -> list[tuple[Reply, str | None]]:
    """Ask; ask again, with the broken rule, what breaks its contract."""
    current = dict(enumerate(requests))
    done: dict[int, tuple[Reply, str | None]] = {}
    for attempt in range(1, attempts + 1):
        order = sorted(current)
        for index, reply in zip(order, client.ask([current[i] for i in order]), strict=True):
            problem = _problem(reply, checks[index])
            done[index] = (replace(reply, attempts=attempt), problem)
            if problem is None or reply.outcome != "valid":
                del current[index]
            else:
                said = f"\n\nYour last reply broke a rule: {problem}. Reply again, complete."
                current[index] = replace(requests[index], user=requests[index].user + said)
        if not current:
            break
    return [done[i] for i in range(len(requests))]


def _problem(reply: Reply, check: Check) -> str | None:
    if reply.value is None:
        return f"{reply.outcome}: {reply.reason}"
    try:
        check(reply.value)
    except ReplyError as error:
        return str(error)
    return None


def chat_client(model: str, cache: str, options: Mapping[str, Any]) -> ChatClient:
    """The client of a model in the capability table.

    Raises
    ------
    ParamError
        No such model.
    """
    models = read_models()
    if model not in models:
        raise ParamError(f"no chat model called {model!r}; known: {', '.join(models)}")
    return ChatClient(models[model], Path(cache), **options)


def transcript_text(said: Iterable[tuple[str, str]]) -> str:
    """Speakers and texts, one numbered turn a line."""
    return "\n".join(f"{i} {speaker}: {text}" for i, (speaker, text) in enumerate(said))


def check_evidence(items: Iterable[Mapping[str, Any]], texts: Sequence[str]) -> None:
    """Evidence is literal in one turn, and absent just where a label needs none.

    Raises
    ------
    ReplyError
        With the id and the rule.
    """
    for item in items:
        evidence = item["evidence"]
        if item["label"] in SILENT:
            if evidence:
                raise ReplyError(f"evidence: {item['id']} is {item['label']} and gives evidence")
        elif not evidence or not any(evidence in text for text in texts):
            raise ReplyError(f"evidence: that of {item['id']} is not literally in the target")


def check_unsupported(found: Sequence[str], texts: Sequence[str]) -> None:
    """Unsupported assertions are literal and listed once; a repeat quarantines the reply.

    Raises
    ------
    ReplyError
    """
    if len(set(found)) != len(found):
        raise ReplyError("quarantined: an unsupported assertion is listed twice")
    for text in found:
        if not text or not any(text in turn for turn in texts):
            raise ReplyError("evidence: an unsupported assertion is not literally in the target")
