from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.clients import Http, Kubectl, http
from volcano_py.sandbox.cluster import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A cluster of two nodes without components; crashed containers start again after 50 ms."""
    async with Sandbox(nodes=2, backoff=0.05) as made:
        yield made


@pytest.fixture
async def api(sandbox: Sandbox) -> AsyncIterator[Http]:
    async with http(sandbox) as client:
        yield client


@pytest.fixture
def kubectl(sandbox: Sandbox, tmp_path: Path) -> Kubectl:
    return Kubectl(sandbox, tmp_path)
