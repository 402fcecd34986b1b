"""Waits say what did not happen, and what the cluster looked like then."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from tests import waiting
from tests.sandbox.clients import PODS, http, pod
from volcano_py.sandbox.cluster import Sandbox


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # clusters of other tests
    monkeypatch.setattr(waiting, "BUDGET", 0.05)
    monkeypatch.setattr(waiting, "SCALE", 1.0)


async def test_a_failed_wait_describes_the_cluster(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "scheduler.log").write_text("first line\nlast line\n")
    async with Sandbox(nodes=1, logs=logs) as sandbox, http(sandbox) as api:
        await api.ok("POST", PODS, pod("waits"))

        async def never() -> bool:
            return False

        with pytest.raises(AssertionError) as caught:
            await waiting.until(never, "the pod does not run")
    text = str(caught.value)
    assert text.startswith("the pod does not run within 0.05 s\n")
    assert "nodes node-0: Ready=True (KubeletReady)" in text
    assert "pods default/waits: Pending on no node" in text
    assert "end of scheduler.log:\n    first line\n    last line" in text


async def test_what_holds_is_returned_and_errors_pass() -> None:
    async def found() -> str:
        return "it"

    async def fails() -> None:
        raise TimeoutError("its own")

    assert await waiting.until(found, "no") == "it"
    assert await waiting.within(found(), "no") == "it"
    with pytest.raises(TimeoutError, match="its own"):
        await waiting.within(fails(), "no")
    with pytest.raises(AssertionError, match=r"too slow within 0\.1 s"):
        await waiting.within(asyncio.sleep(5), "too slow", 2)


def test_the_scale_lengthens_every_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SCALE", 3.0)
    assert waiting.budget(2) == pytest.approx(0.3)
