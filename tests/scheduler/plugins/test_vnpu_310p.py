"""Ascend 310P chips of MindCluster: random histories of one node's chips, and the reports in ConfigMaps."""

from __future__ import annotations

import json
import os
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scheduler.plugins.test_device_ledger import node, task
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import ConfigMap
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.deviceshare.chip_reports import ChipReport, ChipReports, Parameters, parameters_of
from volcano_py.scheduler.plugins.deviceshare.npu_order import points
from volcano_py.scheduler.plugins.deviceshare.vnpu_310p import NpuChips, Vnpu310P
from volcano_py.scheduler.plugins.deviceshare.vnpu_templates import TEMPLATES, YES, VnpuDemand, template_of

EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "60"))
LABELS = {
    "accelerator": "huawei-Ascend310P",
    "servertype": "Ascend310P-8-dual",
    "node.kubernetes.io/npu.chip.name": "310P3",
}
REPORT = ChipReport((("huawei.com/Ascend310P", ""), ("huawei.com/Ascend310P-Unhealthy", "Ascend310P-2")))


def chips(own_list: bool = True, report: ChipReport = REPORT) -> NpuChips:
    on = node(
        {"baseDeviceInfos": '{"Ascend310P-0": {}, "Ascend310P-1": {}, "Ascend310P-2": {}}'},
        **{"huawei.com__npu_core": 24},
    )
    on.metadata.labels = LABELS
    found = Vnpu310P(own_list, {"n": report}, frozenset(), exact=True).cards(on)
    assert found is not None
    return found


def check(cards: NpuChips) -> None:
    """No chip gives more than it has: counted from what the pods hold, not from the chips' sums."""
    for chip in cards.chips:
        here = [held for held in cards.pods.values() if chip in held.chips]
        if any(not held.template for held in here):
            assert len(here) == 1, "a whole chip has another user"
            continue
        amounts = [TEMPLATES[held.template] for held in here]
        assert sum(a.cores for a in amounts) <= 8 and sum(a.cpus for a in amounts) <= 7
        kinds = Counter(a.dvpp for a in amounts)
        assert kinds[YES] <= 1 and not (kinds[YES] and kinds["null"]), "the video units have two users"
    assert 2 not in cards.chips, "the unhealthy chip is in use"


DEMANDS = st.one_of(
    st.builds(
        lambda cores, high, dvpp: VnpuDemand(cores, template_of(cores, high, dvpp)),
        st.sampled_from([1, 2, 4]),
        st.booleans(),
        st.sampled_from(["yes", "no", "null"]),
    ),
    st.sampled_from([VnpuDemand(8), VnpuDemand(16), VnpuDemand(24), VnpuDemand(3)]),
)
HISTORY = st.lists(st.tuples(st.sampled_from(["take", "create", "delete", "evict and restore"]), st.integers(0, 9)))


@settings(max_examples=EXAMPLES)
@given(demands=st.lists(DEMANDS, min_size=10, max_size=10), history=HISTORY)
def test_no_part_of_a_chip_is_assigned_twice_and_all_are_released(
    demands: list[VnpuDemand], history: list[tuple[str, int]]
) -> None:
    cards = chips()
    empty = cards.state()
    pods = [task(f"p{i}", []) for i in range(len(demands))]
    for what, i in history:
        pod, before, held = pods[i], cards.state(), pods[i].key in cards.pods
        if what == "take" and not held:
            code = cards.fit(demands[i]).code
            taken = cards.take(demands[i], pod)
            assert (taken.error is None) is (code == 0)
            if taken.error is None:
                pod.assigned = taken.annotations
            else:
                assert cards.state() == before, "a failure has left something behind"
        elif what == "create" and held and pod.assigned:
            text = pod.assigned["huawei.com/npu-core"]
            group = sum(p.group != "" for p in cards.pods.values()) % 4
            pod.assigned["huawei.com/AscendReal"] = f"Ascend310P-x-100-{text.partition('-')[0]}_{group}"
            cards.uncount(pod)
            cards.count(pod)
        elif what == "delete" and held:
            cards.release(pod)
            pod.assigned = None
        elif what == "evict and restore" and held and "huawei.com/AscendReal" in (pod.assigned or {}):
            cards.release(pod)
            cards.count(pod)
            assert cards.state() == before
        check(cards)
    for pod in pods:
        cards.release(pod)
    assert cards.state() == empty


def test_without_reports_there_are_no_usable_chips() -> None:
    assert chips(report=ChipReport()).fit(VnpuDemand(1, "vir01")).code == 2
    assert chips(own_list=False).fit(VnpuDemand(1, "vir01")).code == 3, "the list in the ConfigMap is empty"
    listed = ChipReport((("huawei.com/Ascend310P", "Ascend310P-1,Ascend310P-12345,x"),))
    assert chips(own_list=False, report=listed).chips == {1}


def test_chips_that_the_node_cannot_have_are_not_believed() -> None:
    listed = ChipReport((("huawei.com/Ascend310P", "Ascend310P-1"),))
    cards = chips(own_list=False, report=listed)
    liar = task("liar", [], {"huawei.com/npu-core": ",".join(map(str, range(9000)))})
    cards.count(liar)
    assert cards.chips == {0, 1, 2}, "24 AI cores are three chips"
    assert cards.pods[liar.key].chips == (0, 1, 2)


def config_map(name: str, version: str, data: dict[str, str], namespace: str = "mindx-dl") -> dict[str, ConfigMap]:
    manifest = {"metadata": {"name": name, "namespace": namespace, "resourceVersion": version}, "data": data}
    return {f"{namespace}/{name}": from_manifest(ConfigMap, manifest)}


def test_a_report_moves_only_the_nodes_that_it_changes() -> None:
    reports, parameters = ChipReports(), Parameters()
    name = "cluster-info-device-0"

    def lists(version: str, **chips: str) -> dict[str, ConfigMap]:
        devices = {node: {"DeviceList": {"huawei.com/Ascend310P": text}} for node, text in chips.items()}
        rows = {f"mindx-dl-deviceinfo-{node}": found | {"UpdateTime": version} for node, found in devices.items()}
        return config_map(name, version, {name: json.dumps(rows)})

    assert reports.update(lists("1", a="Ascend310P-0", b=""), parameters) == {"a", "b"}
    assert reports.update(lists("2", a="Ascend310P-0", b="Ascend310P-1"), parameters) == {"b"}
    assert reports.update(lists("2", a="not read: the same version"), parameters) == set()
    assert reports.update(config_map(name, "3", {name: "{"}), parameters) == set(), "the reports before count"
    assert reports.problems and name in reports.problems[0]
    assert reports.update(config_map(name, "3", {name: "{"}), parameters) == set() and not reports.problems
    assert reports.by_node["b"].chips("huawei.com/Ascend310P") == {1}
    assert reports.update({}, parameters) == {"a", "b"}


def test_devices_and_status_of_a_node_are_joined() -> None:
    devices = config_map(
        "mindx-dl-deviceinfo-n", "1", {"DeviceInfoCfg": '{"DeviceInfo": {"DeviceList": {}}}'}, "kube-system"
    )
    status = config_map("mindx-dl-nodeinfo-n", "1", {"NodeInfo": '{"NodeInfo": {"NodeStatus": "PreSeparate"}}'})
    other = config_map("mindx-dl-nodeinfo-m", "1", {"NodeInfo": ""})
    reports = ChipReports()
    reports.update(status | devices | other, Parameters(cluster_info=False))
    assert reports.by_node == {"n": ChipReport((), "PreSeparate"), "m": ChipReport()}
    reports.update(status | devices | other, Parameters())
    assert not reports.by_node, "ClusterD reports nothing"


def test_parameters_are_true_unless_they_say_otherwise() -> None:
    text = "{actions: allocate, configurations: [{name: init-params, arguments: %s}]}"
    configuration = load(text % '{useClusterInfoManager: "false"}', ["allocate"])
    assert parameters_of(configuration) == Parameters(False, True)
    assert not configuration.warnings
    for arguments in ("{useClusterInfoManager: true}", "{}", "[true]"):
        assert parameters_of(load(text % arguments, ["allocate"])) == Parameters()


def test_points_of_nodes() -> None:
    order = np.array([2, 0, 1])
    assert points(order, np.array([False, False, False])).tolist() == [0, 0, 8]
    assert points(order, np.array([True, False, True])).tolist() == [8, 16, 8]
    assert points(order, np.array([True, False, False])).tolist() == [0, 0, 16]
    assert points(order, np.array([True, True, True])).tolist() == [8, 8, 8]
    assert points(order[:0], np.array([], dtype=bool)).tolist() == []
