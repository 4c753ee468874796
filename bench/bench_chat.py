"""Requests in flight and memory of the chat client, against a local server that is slow.

Run as ``python bench/bench_chat.py [requests]`` (4,000 by default). The server is a process of
its own: it answers each request after 0.2 s, counts how many it holds at once, and gives the
judge's reply for one claim. The client's memory is read before, at a quarter of the requests
and at the end; what grows with the number of requests is a leak. Then the same is asked again,
from kept replies. Prints one JSON line.

Functions: :func:`measure`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel

from aegis.engines.chat import ChatClient, ChatModel, ChatRequest

DELAY_S = 0.2
IN_FLIGHT = 64
PORTION = 500
PADDING = "The patient has had a cough since Monday. " * 100
"""About 4,000 characters: a transcript of a short conversation."""


class Item(BaseModel):
    id: str
    label: str


class Reply(BaseModel):
    items: list[Item]


def serve() -> None:
    """Answer until a line comes in; print the port, then the most requests held at once."""
    held = {"now": 0, "most": 0}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            await reader.readexactly(size)
            held["now"] += 1
            held["most"] = max(held["most"], held["now"])
            await asyncio.sleep(DELAY_S)
            held["now"] -= 1
            content = json.dumps(completion()).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                + str(len(content)).encode() + b"\r\n\r\n" + content
            )  # fmt: skip
            await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(guarded(answer), "127.0.0.1", 0, backlog=256)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        print(held["most"], flush=True)

    asyncio.run(main())


def guarded(answer: Any) -> Any:
    """The handler without the error of a connection that its client closed."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    return handle


def completion() -> dict[str, Any]:
    content = json.dumps({"items": [{"id": "f1", "label": "preserved"}]})
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": "c", "object": "chat.completion", "created": 0, "model": "local",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
    }  # fmt: skip


def measure(run_name: str = "", n_requests: int = 4000) -> dict[str, float]:
    """Ask in portions as a stage does; ``run_name`` is not used."""
    del run_name
    command = [sys.executable, __file__, "serve"]
    server = subprocess.Popen(  # nosec B603 # this file, no shell
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            model = ChatModel("local", "r", "none", base_url=f"http://127.0.0.1:{port}/v1")
            client = ChatClient(model, Path(folder), concurrency=IN_FLIGHT)
            first, memory = _ask_all(client, n_requests)
            again, _ = _ask_all(client, n_requests)
        server.stdin.write("most\n")
        server.stdin.flush()
        most = int(server.stdout.readline())
    finally:
        server.kill()
    quarter, end = memory[len(memory) // 4], memory[-1]
    return {
        "requests": n_requests, "chat_s": round(first, 1), "chat_cached_s": round(again, 1),
        "chat_most_in_flight": most, "chat_memory_quarter_mb": quarter, "chat_memory_end_mb": end,
        "chat_memory_growth_mb": round(end - quarter, 1),
    }  # fmt: skip


def _ask_all(client: ChatClient, n: int) -> tuple[float, list[float]]:
    """Seconds, and resident memory in MB after each portion."""
    process, memory = psutil.Process(), []
    began = time.perf_counter()
    for start in range(0, n, PORTION):
        requests = [
            ChatRequest(f"q{i}", "system", f"{i} {PADDING}", Reply, 256, ("f1",))
            for i in range(start, min(n, start + PORTION))
        ]
        replies = client.ask(requests)
        if any(reply.outcome != "valid" for reply in replies):
            raise RuntimeError("a request failed against the local server")
        memory.append(round(process.memory_info().rss / 2**20, 1))
    return time.perf_counter() - began, memory


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
        sys.exit()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print(json.dumps({"bench": "chat", **measure(n_requests=count)}))
