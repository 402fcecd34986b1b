"""A job that must stay within one domain of the network, from kubectl to its nodes; and a HyperNode that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import cluster, job, kubectl, pods_of, until
from volcano_py.api.kinds import EVENT, JOB

HYPER_NODES = """
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack-a}
spec:
  tier: 1
  members: [{type: Node, selector: {regexMatch: {pattern: "-[01]$"}}}]
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack-b}
spec:
  tier: 1
  members: [{type: Node, selector: {regexMatch: {pattern: "-[23]$"}}}]
"""

PARENTS = """
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: row}
spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: rack-a}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: wrong}
spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: rack-a}}}]}
"""


@pytest.mark.slow
async def test_a_job_stays_within_a_rack(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=4, shape="cpu=2,memory=8Gi") as (sandbox, client):
        code, _, errors = await kubectl(sandbox, tmp_path, "apply", "-f", "-", stdin=HYPER_NODES)
        assert code == 0, errors
        unreadable = HYPER_NODES.replace("-[01]$", "(?=x)")
        code, _, errors = await kubectl(sandbox, tmp_path, "apply", "-f", "-", stdin=unreadable)
        assert code == 1 and "use RE2 syntax" in errors
        code, _, errors = await kubectl(sandbox, tmp_path, "apply", "-f", "-", stdin=PARENTS)
        assert code == 0, errors
        for name, replicas, cpu in (("fits", 2, "900m"), ("large", 3, "2")):
            manifest = job(name, replicas, cpu, seconds=60)
            manifest["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
            await client.create(JOB, manifest, "default")

        async def placed() -> set[str] | None:
            nodes = {p["spec"].get("nodeName", "") for p in await pods_of(client, "fits")}
            return nodes if nodes and "" not in nodes else None

        nodes = await until(placed, "the job that fits a rack is not placed")
        assert len({int(n.rsplit("-", 1)[1]) // 2 for n in nodes}) == 1, nodes

        async def events() -> list[dict[str, Any]]:
            return [*await client.list(EVENT)]

        async def told() -> bool:
            return any("No HyperNode of tier 1 or below holds the gang" in event["message"] for event in await events())

        await until(told, "the job that fits no rack does not say why it waits")
        assert not any(p["spec"].get("nodeName") for p in await pods_of(client, "large"))

        async def reported() -> bool:
            found = [event["message"] for event in await events() if event["involvedObject"]["name"] == "wrong"]
            return any("HyperNode rack-a already has a parent row" in message for message in found)

        await until(reported, "no Event names the HyperNode that wants another one's child")
