from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.clients import Http, Kubectl, http
from volcano_py.sandbox.cluster import Sandbox


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A sandbox that runs commands."""
    async with Sandbox(nodes=2, crds=False, backoff=0.05, path=tmp_path / "kubeconfig", run_commands=True) as made:
        yield made


@pytest.fixture
async def real(machine: Sandbox) -> AsyncIterator[Http]:
    async with http(machine) as client:
        yield client


@pytest.fixture
def real_kubectl(machine: Sandbox, tmp_path: Path) -> Kubectl:
    return Kubectl(machine, tmp_path)
