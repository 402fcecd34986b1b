"""The debug socket of a running scheduler: its log level, and dumps."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import aiohttp
import pytest

from tests import waiting
from volcano_py.scheduler.runtime.debug_socket import SOCKET, VARIABLE, Dumps, LogLevel, serving_debug_socket


async def get(folder: Path, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(folder / SOCKET))) as session,
        session.get(f"http://localhost{path}") as answer,
    ):
        return answer.status, await answer.text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "klog-socks"))
    return tmp_path / "klog-socks"


async def test_a_level_holds_for_a_while(folder: Path) -> None:
    applied: list[str] = []
    async with serving_debug_socket(LogLevel("INFO", applied.append), None):
        assert stat.S_IMODE((folder / SOCKET).stat().st_mode) == 0o600
        assert await get(folder, "/getlevel") == (200, "Current klog log level: 3\n")
        status, text = await get(folder, "/setlevel?level=5&duration=1h")
        assert (status, text) == (200, "Change klog log level to 5 successfully and  for 1h\n")
        assert applied == ["DEBUG"] and await get(folder, "/getlevel") == (200, "Current klog log level: 5\n")
        assert (await get(folder, "/setlevel?level=8&duration=20ms"))[0] == 200  # the hour ends, too
        async with waiting.limit("the level at the start is not set again"):
            while applied != ["DEBUG", "DEBUG", "INFO"]:
                await asyncio.sleep(0.01)
        assert await get(folder, "/getlevel") == (200, "Current klog log level: 3\n")
    assert not (folder / SOCKET).exists()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "level=5",
        "duration=5s",
        "level=0&duration=5s",
        "level=x&duration=5s",
        "level=5&duration=-5s",
        "level=5&duration=5",
    ],
)
async def test_other_requests_are_rejected(folder: Path, query: str) -> None:
    applied: list[str] = []
    async with serving_debug_socket(LogLevel("DEBUG", applied.append), None):
        status, text = await get(folder, f"/setlevel?{query}")
        assert status == 400 and f"curl --unix-socket {folder / SOCKET}" in text
        assert not applied and await get(folder, "/getlevel") == (200, "Current klog log level: 4\n")


async def test_the_socket_of_an_earlier_process_is_replaced_and_other_files_are_not(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    server = await asyncio.start_unix_server(lambda *_: None, folder / SOCKET)
    server.close()
    await server.wait_closed()
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), None):
        assert (await get(folder, "/getlevel"))[0] == 200
    (folder / SOCKET).write_text("kept")
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), None):
        pass
    assert (folder / SOCKET).read_text() == "kept"
    assert f"{folder / SOCKET} cannot be served (" in caplog.text and VARIABLE in caplog.text


async def test_a_path_that_is_too_long_is_reported_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / ("x" * 120)))
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), None):
        assert "cannot be served (AF_UNIX path too long); choose another folder" in caplog.text


async def test_without_a_folder_nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), None):
        pass


async def test_dumps(folder: Path) -> None:
    dumps = Dumps(lambda: (b"%d," % number for number in range(1_200)), lambda: ["node n1", "job g"])
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), dumps):
        status, text = await get(folder, "/dump")
        assert status == 200 and text == "".join(f"{number}," for number in range(1_200))
        assert await get(folder, "/summary") == (200, "node n1\njob g\n")
    async with serving_debug_socket(LogLevel("INFO", lambda _: None), None):
        assert (await get(folder, "/dump"))[0] == 404
