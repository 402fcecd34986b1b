"""The ConfigMaps with reports of chips are watched exactly as long as the configuration requires them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests import waiting
from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.api.resource_types import NAMESPACE
from volcano_py.kube import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.remote.chip_report_maps import ChipReportMaps


def configuration(cluster_info: str, on: str = "true") -> Configuration:
    plugin = f"{{name: deviceshare, arguments: {{deviceshare.AscendMindClusterVNPUEnable: {on}}}}}"
    parameters = f"[{{name: init-params, arguments: {{useClusterInfoManager: {cluster_info}}}}}]"
    return load(f"{{actions: allocate, tiers: [{{plugins: [{plugin}]}}], configurations: {parameters}}}", ["allocate"])


async def test_reports_are_read_while_the_configuration_requires_them(tmp_path: Path) -> None:
    current = configuration("true", on="false")
    known: dict[str, str] = {}

    def put(key: tuple[str, str], found: ConfigMap | None) -> None:
        if found is None:
            del known["/".join(key)]
        else:
            known["/".join(key)] = (found.data or {}).get("x", "")

    async with (
        Sandbox(0, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        await client.create(NAMESPACE, {"metadata": {"name": "mindx-dl"}})
        for namespace, name, label in (
            ("mindx-dl", "cluster-info-device-0", "mx-consumer-volcano"),
            ("mindx-dl", "cluster-info-switch-0", "mx-consumer-volcano"),
            ("mindx-dl", "cluster-info-device-1", "other"),
            ("kube-system", "mindx-dl-deviceinfo-n", "mx-consumer-cim"),
        ):
            meta = {"name": name, "labels": {label: "true"}}
            await client.create(CONFIGMAP, {"metadata": meta, "data": {"x": "1"}}, namespace)
        maps = ChipReportMaps(client, lambda: current, put)
        task = asyncio.create_task(maps.run())

        async def are(expected: dict[str, str]) -> bool:
            assert not task.done()
            return known == expected

        await asyncio.wait_for(maps.read.wait(), 60)
        assert known == {}, "nothing requires them"
        current = configuration("true")
        cluster, node = "mindx-dl/cluster-info-device-0", "kube-system/mindx-dl-deviceinfo-n"
        await waiting.until(lambda: are({cluster: "1"}), "the ConfigMaps of ClusterD are not read")
        await client.patch(CONFIGMAP, "cluster-info-device-0", {"data": {"x": "2"}}, "mindx-dl")
        await waiting.until(lambda: are({cluster: "2"}), "a change is not read")
        current = configuration("false")
        await waiting.until(lambda: are({node: "1"}), "those of the node agents are not read instead")
        await client.delete(CONFIGMAP, "mindx-dl-deviceinfo-n", "kube-system")
        await waiting.until(lambda: are({}), "a deleted one is still counted")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
