"""The cases of admission.yaml once more, in a cluster with our admission policies instead of webhooks.

What policies cannot check or fill in has `webhook: true` in the table, and must differ here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.acceptance import site as sites
from tests.acceptance.site import MARKS, Manifest, Site, task
from tests.acceptance.test_admission import CASES, submit
from tests.sandbox.test_policy_documents import resource
from volcano_py.api.kinds import JOB
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.webhooks.policy_documents import MOST_TASKS, documents

pytestmark = MARKS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox | None]:
    """A sandbox with policies and without webhooks; None where CLUSTER names a cluster of this kind."""
    if sites.ADMISSION != sites.WEBHOOKS:
        yield None
        return
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
    if row.get("stored") and sites.ADMISSION == sites.VALIDATING_POLICIES:
        pytest.skip("the server has no MutatingAdmissionPolicies")
    if row.get("webhook"):
        with pytest.raises(AssertionError):
            await submit(at, kind, row)
        return
    await submit(at, kind, row)


async def test_a_job_with_many_tasks_can_be_created_and_scaled(at: Site) -> None:
    """The cost of expressions is limited on a real API server, and some compare every task with every other."""
    containers = [
        {"name": name, "image": "busybox", "env": [{"name": "A", "value": "b"}]} for name in ("main", "other")
    ]
    tasks = [task(f"task-{number}", 1, pod={"containers": containers}) for number in range(MOST_TASKS)]
    await at.job("job", *tasks, cpu="", policies=[{"exitCode": code, "action": "AbortJob"} for code in range(1, 11)])
    await at.patch(JOB, "job", {"spec": {"minAvailable": 1}})
