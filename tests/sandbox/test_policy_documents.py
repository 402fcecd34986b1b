"""Our admission policies in a cluster without our webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from volcano_py.api.kinds import JOB, NAMESPACE, PODGROUP, QUEUE, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.webhooks.policy_documents import documents

TASK = {"name": "work", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}}
PLURALS = {"Policy": "policies", "PolicyBinding": "policybindings"}


def resource(document: dict[str, Any]) -> ResourceType:
    group, _, version = document["apiVersion"].partition("/")
    kind = document["kind"]
    plural = kind.removesuffix("Policy").removesuffix("PolicyBinding").lower()
    suffix = PLURALS["PolicyBinding" if kind.endswith("Binding") else "Policy"]
    return ResourceType(group, version, plural + suffix, kind, False)


def made(rt: ResourceType, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": "team"} if rt.namespaced else {})
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata, "spec": spec}


async def test_defaults_and_denials_without_a_webhook(tmp_path: Path) -> None:
    async with (
        Sandbox(0, components=(), path=tmp_path / "kubeconfig", volcano_admission=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        for document in documents("ours", mutating="v1"):
            await client.create(resource(document), document)
        annotations = {"scheduling.volcano.sh/queue-name": "team-queue"}
        metadata = {"name": "team", "annotations": annotations}
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

        job = await client.create(JOB, made(JOB, "train", tasks=[TASK], plugins={"mpi": ["--master=work"]}))
        spec = job["spec"]
        filled = (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"])
        assert filled == ("default", "ours", 3, 2)
        assert set(spec["plugins"]) == {"mpi", "svc", "ssh"}
        ray = await client.create(JOB, made(JOB, "ray", tasks=[TASK], plugins={"ray": []}))
        assert ray["spec"]["plugins"]["svc"] == []
        group = await client.create(PODGROUP, made(PODGROUP, "group", minMember=1))
        assert group["spec"]["queue"] == "team-queue"
        queue = await client.create(QUEUE, made(QUEUE, "q"))
        assert (queue["spec"]["reclaimable"], queue["spec"]["weight"]) == (True, 1)

        for rt, rejected, words in (
            (JOB, made(JOB, "bad", tasks=[TASK], minAvailable=3), "greater than total replicas"),
            (QUEUE, made(QUEUE, "bad", guarantee={"resource": {"cpu": "2"}}), "deserved must be >= guarantee"),
        ):
            with pytest.raises(ApiError, match=words):
                await client.create(rt, rejected)
        with pytest.raises(ApiError, match="can not be deleted"):
            await client.delete(QUEUE, "default")
        policies = [{"event": "PodFailed", "action": "RestartPartition"}]
        await client.create(JOB, made(JOB, "parts", tasks=[TASK], policies=policies))
