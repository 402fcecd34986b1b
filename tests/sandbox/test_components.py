"""Components are started again when they end, as kubelet does with containers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.waiting import budget
from volcano_py.sandbox import components
from volcano_py.sandbox.components import Components


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A component that ends at once for as long as the file `broken` exists."""
    (tmp_path / "component.py").write_text(
        "import pathlib, sys, time\n"
        f"print('started', flush=True)\n"
        f"if pathlib.Path({str(tmp_path / 'broken')!r}).exists(): sys.exit(2)\n"
        "time.sleep(1000)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(components, "FIRST_PAUSE", 0.01)
    return tmp_path


async def test_a_component_that_ends_is_started_again(module: Path) -> None:
    (module / "broken").touch()
    ends: list[tuple[str, int, float]] = []
    made = Components(lambda name: [name], module / "logs", on_end=lambda *end: ends.append(end))
    await made.start(["component"])
    try:
        async with asyncio.timeout(budget()):
            while len(ends) < 3:
                await asyncio.sleep(0.01)
            (module / "broken").unlink()
            while made.processes["component"].returncode is not None:
                await asyncio.sleep(0.01)
        assert ends[:3] == [("component", 2, 0.01), ("component", 2, 0.02), ("component", 2, 0.04)]
        assert made.ended() == {"component": 2}
        assert (module / "logs" / "component.log").read_text().count("started") >= 3, "the log is kept"
    finally:
        await made.stop()
    assert made.processes == {}


async def test_a_component_that_is_started_by_hand_is_started_once(module: Path) -> None:
    made = Components(lambda name: [name])
    await made.start(["component"])
    first = made.processes["component"]
    first.kill()
    await first.wait()
    await made.start(["component"])
    second = made.processes["component"]
    await asyncio.sleep(0.1)
    assert made.processes["component"] is second and second.returncode is None
    await made.stop()
