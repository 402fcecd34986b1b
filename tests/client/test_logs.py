"""A log that breaks: the lines are those of the log, in their order, none twice and none missing; or an error.

The model is a list of lines and a server that compares whole seconds, as kubelet does; it breaks where hypothesis cuts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.client import log_lines
from volcano_py.client.errors import LogsInterrupted
from volcano_py.client.log_lines import LogLine, Selection
from volcano_py.kube.errors import ApiError, NotFound, Unreachable

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "1"},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"phase": "Running"},
}
BREAKS = (None, Unreachable("connection lost"), ApiError(502, "", "bad gateway"))


class Reader:
    def __init__(self, chunks: list[bytes], failure: Exception | None) -> None:
        self.chunks, self.failure = chunks, failure

    async def readany(self) -> bytes:
        if self.chunks:
            return self.chunks.pop(0)
        if self.failure is not None:
            raise self.failure
        return b""


class Server:
    """Serves a log; `cuts`: how many bytes a connection carries, and how it ends."""

    def __init__(self, lines: list[tuple[str, str]], cuts: list[tuple[int, Exception | None]]) -> None:
        self.lines, self.cuts = lines, list(cuts)
        self.phase, self.uid, self.gone = "Running", "1", False

    @asynccontextmanager
    async def stream(self, path: str, query: dict[str, Any]) -> AsyncIterator[Reader]:
        if self.gone:
            raise NotFound(404, "NotFound", "no pod")
        since = query.get("sinceTime", "")[:19]
        text = "".join(f"{stamp} {line}\n" for stamp, line in self.lines if stamp[:19] >= since).encode()
        if self.cuts:
            amount, failure = self.cuts.pop(0)
            yield Reader([text[:amount]] if amount else [], failure)
            return
        self.phase = "Succeeded"
        half = len(text) // 2
        yield Reader([part for part in (text[:half], text[half:]) if part], None)

    async def get(self, rt: Any, name: str, namespace: str) -> Any:
        return {**POD, "metadata": {**POD["metadata"], "uid": self.uid}, "status": {"phase": self.phase}}


async def returned(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[LogLine]:
    monkeypatch.setattr(log_lines, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(log_lines, "MAX_PAUSE", 0.0)
    lines: asyncio.Queue[Any] = asyncio.Queue()
    await log_lines._Reader(server, POD, Selection(), lines).run()  # type: ignore[arg-type]
    return [lines.get_nowait() for _ in range(lines.qsize())]


_FRACTIONS = st.sampled_from(["", ".1", ".12", ".125", ".5", ".999999999"])
_TEXTS = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=5)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 3), _FRACTIONS, _TEXTS), max_size=10),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(BREAKS)), max_size=5),
)
def test_no_line_is_lost_or_repeated(
    drawn: list[tuple[int, str, str]], cuts: list[tuple[int, Exception | None]]
) -> None:
    ordered = sorted(drawn, key=lambda one: (one[0], float(f"0{one[1] or '.0'}")))
    lines = [(f"2026-01-01T00:00:0{second}{fraction}Z", text) for second, fraction, text in ordered]
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = asyncio.run(returned(Server(lines, cuts), monkeypatch))
    assert [(line.time, line.text) for line in found] == lines


async def test_a_log_that_stays_broken_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [("2026-01-01T00:00:00Z", "first")]
    server = Server(lines, [(0, None), *[(0, Unreachable("connection refused"))] * 50])
    with pytest.raises(LogsInterrupted) as raised:
        await returned(server, monkeypatch)
    assert raised.value.object == "pod default/p" and "connection refused" in str(raised.value)
    assert raised.value.remedy and len(server.cuts) == 50 - log_lines.ATTEMPTS - 1


async def test_a_deleted_pod_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([("2026-01-01T00:00:00Z", "first")], [(100, None)])
    server.gone = True
    [line] = await returned(server, monkeypatch)
    assert line.notice and "was deleted" in line.text
    server = Server([("2026-01-01T00:00:00Z", "first")], [(100, None)])
    server.uid = "2"
    first, line = await returned(server, monkeypatch)
    assert first.text == "first" and line.notice and "created again" in line.text
