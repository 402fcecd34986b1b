from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.clients import Http, Kubectl, http
from volcano_py.sandbox.cluster import Sandbox


@pytest.fixture
async def scheduled(tmp_path: Path) -> AsyncIterator[tuple[Http, Kubectl]]:
    """A cluster of three nodes with our scheduler, and its clients."""
    async with Sandbox(nodes=3, components=("scheduler",), logs=tmp_path / "logs") as made, http(made) as client:
        yield client, Kubectl(made, tmp_path)
