"""Running our programs from tests."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

import pytest
from click.testing import CliRunner

from tests import waiting
from volcano_py.cli.vcctl import main

Vcctl = Callable[..., Awaitable[tuple[int, str]]]
Tool = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def vcctl(monkeypatch: pytest.MonkeyPatch) -> Vcctl:
    """`await vcctl("job", "list")` → exit code and output. KUBECONFIG names the cluster."""

    async def run(*arguments: str) -> tuple[int, str]:
        result = await asyncio.to_thread(CliRunner().invoke, main, arguments, prog_name="vcctl")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    return run


@pytest.fixture
def tool() -> Tool:
    """`await tool("vjobs", "-n", "x")` → exit code, standard output, standard error."""

    async def run(program: str, *arguments: str) -> tuple[int, str, str]:
        command = import_module(f"volcano_py.cli.{program}").main
        result = await asyncio.to_thread(CliRunner().invoke, command, arguments, prog_name=program)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return run


@asynccontextmanager
async def started(program: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program in a process of its own, ended at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"volcano_py.cli.{program}",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line_of(process: asyncio.subprocess.Process) -> str:
    """The next line that it prints."""
    assert process.stdout is not None and process.stderr is not None
    try:
        async with asyncio.timeout(waiting.budget()):
            return (await process.stdout.readline()).decode()
    except TimeoutError:
        process.kill()
        printed = (await process.stderr.read()).decode()
        raise waiting.failure(f"no further line (standard error: {printed!r})") from None
