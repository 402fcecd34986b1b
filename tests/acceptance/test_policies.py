"""The cases of admission.yaml once more, in a cluster with our admission policies instead of webhooks.

What policies cannot check or fill in has `webhook: true` in the table, and must differ here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.acceptance import site as sites
from tests.acceptance.site import MARKS, Manifest, Site
from tests.acceptance.test_admission import CASES, submit
from tests.sandbox.test_policy_documents import resource
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.webhooks.policy_documents import documents

pytestmark = MARKS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox]:
    """A sandbox with policies and without webhooks."""
    if sites.KUBECONFIG:
        pytest.skip("the cluster has webhooks")
    folder = tmp_path_factory.mktemp("cluster")
    async with sites.cluster(folder, nodes=0, volcano_admission=False) as sandbox:
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
            for document in documents("volcano", mutating="v1"):
                await client.create(resource(document), document)
        yield sandbox


@pytest.mark.parametrize(("kind", "row"), CASES)
async def test_policies(at: Site, kind: str, row: Manifest) -> None:
    if row.get("webhook"):
        with pytest.raises(AssertionError):
            await submit(at, kind, row)
        return
    await submit(at, kind, row)
