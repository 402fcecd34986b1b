"""Fixtures of the acceptance suite. Its modules have `pytestmark = MARKS`: each has one cluster and one event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.acceptance import site as sites
from tests.acceptance.site import Site
from volcano_py.sandbox.cluster import Sandbox


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox | None]:
    """One cluster for a module; None where CLUSTER names another."""
    if sites.KUBECONFIG:
        yield None
        return
    async with sites.cluster(tmp_path_factory.mktemp("cluster")) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster_without_nodes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox | None]:
    """A sandbox without nodes, for modules whose tests make their own; None where hollow nodes are attached to another
    cluster."""
    if sites.HOLLOW:
        yield None
        return
    if sites.KUBECONFIG:
        pytest.skip("it needs a cluster without nodes of its own")
    async with sites.cluster(tmp_path_factory.mktemp("cluster"), nodes=0) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(loop_scope="module")
async def at(cluster: Sandbox | None) -> AsyncIterator[Site]:
    """A namespace of its own for a test."""
    async with sites.site(cluster, sites.KUBECONFIG or (cluster.kubeconfig if cluster else "")) as made:
        yield made
