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


@pytest.fixture
def gates() -> str:
    """The feature gates of `groups_api`."""
    return "AllAlpha=true"


@pytest.fixture
async def groups_api(gates: str) -> AsyncIterator[Http]:
    """A cluster of one node that serves the groups of Kubernetes 1.37."""
    async with Sandbox(nodes=1, feature_gates=gates, kubernetes_version="1.37") as made, http(made) as client:
        yield client
