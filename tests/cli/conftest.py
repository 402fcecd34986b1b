"""Running our programs from tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from click.testing import CliRunner

from volcano_py.cli.vcctl import main

Vcctl = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def vcctl(monkeypatch: pytest.MonkeyPatch) -> Vcctl:
    """`await vcctl("job", "list")` → exit code and output. KUBECONFIG names the cluster."""

    async def run(*arguments: str) -> tuple[int, str]:
        result = await asyncio.to_thread(CliRunner().invoke, main, arguments, prog_name="vcctl")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    return run
