"""`volcano-py simulate profiles` with manifests: the table, JSON, and the calls of plugins."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tests.scheduler.profiles import all_points
from volcano_py.cli.simulate import simulate

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins: {multiPoint: {enabled: [{name: AllPoints}, {name: DefaultBinder}], disabled: [{name: "*"}]}}
- schedulerName: other
  plugins: {multiPoint: {enabled: [{name: AllPoints}], disabled: [{name: PrioritySort}]}}
"""
OBJECTS = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 2, memory: 8Gi, pods: 110}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 100
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
---
"""


def pod(name: str, scheduler: str, cpu: str = "1", extra: str = "") -> str:
    container = f"{{name: main, image: i, resources: {{limits: {{cpu: {cpu}}}}}}}"
    spec = f"{{schedulerName: {scheduler}, terminationGracePeriodSeconds: 2, containers: [{container}]{extra}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"


def simulated(tmp_path: Path, pods: str, *options: str, config: str = CONFIG) -> Result:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "all_points.py").write_text(Path(all_points.__file__).read_text())
    (tmp_path / "config.yaml").write_text(config)
    (tmp_path / "objects.yaml").write_text(OBJECTS + pods)
    files = ["--config", str(tmp_path / "config.yaml"), "--plugins-dir", str(plugins), str(tmp_path / "objects.yaml")]
    return CliRunner().invoke(simulate, ["profiles", *files, *options])


def test_a_row_for_each_pod(tmp_path: Path) -> None:
    pods = pod("low", "other", "2") + pod("high", "other", "2", ", priorityClassName: urgent")
    pods += pod("big", "other", "3") + pod("gated", "other", "1", ", schedulingGates: [{name: later}]")
    found = simulated(tmp_path, pods + pod("lost", "unknown"))
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in found.stdout.splitlines()}
    assert rows["POD"] == ["PROFILE", "NODE  REASON"]
    assert rows["default/high"] == ["other", "n1"]
    assert rows["default/low"][1].startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert rows["default/big"][1].startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert rows["default/gated"] == ["other", "gated: later"]
    assert rows["default/lost"] == ["unknown", "no profile has the schedulerName unknown; profiles are mine, other"]
    assert "left out: PodGroup of Volcano" in found.stderr


def test_an_evicted_pod(tmp_path: Path) -> None:
    running = pod("low", "other", "2", ", nodeName: n1")
    found = simulated(tmp_path, running + pod("high", "other", "2", ", priorityClassName: urgent"), "--until=10")
    rows = [line.split() for line in found.stdout.splitlines()[1:]]
    assert rows == [["default/low", "other", "evicted"], ["default/high", "other", "n1"]]


def test_the_calls_of_a_plugin_in_order(tmp_path: Path) -> None:
    found = simulated(tmp_path, pod("a", "mine"), "--calls", "-o", "json")
    document = json.loads(found.stdout)
    assert document["bound"] == {"default/a": "n1"}
    points = [c["point"] for c in document["calls"] if c["plugin"] == "AllPoints"]
    assert points == [
        "PreEnqueue",
        "QueueSort",
        "PreFilter",
        "Filter",
        "Reserve",
        "Permit",
        "PreBind",
        "Bind",
        "PostBind",
    ]
    (call,) = [c for c in document["calls"] if c["point"] == "Filter"]
    assert (call["pod"], call["node"], call["answer"]) == ("default/a", "n1", "Success")


def test_the_calls_as_a_table(tmp_path: Path) -> None:
    rejected = pod("a", "mine").replace("{name: a}", "{name: a, labels: {fail: filter}}")
    lines = simulated(tmp_path, rejected, "--calls", "--until=0").stdout.splitlines()
    assert any(line.split()[:5] == ["0.000", "default/a", "Filter", "AllPoints", "n1"] for line in lines)
    assert any("PostFilter" in line and "Unschedulable: AllPoints cannot help" in line for line in lines)


def test_mistakes_name_the_file(tmp_path: Path) -> None:
    found = simulated(tmp_path, "", config=CONFIG.replace("multiPoint", "everyPoint"))
    assert found.exit_code == 2
    assert f"{tmp_path / 'config.yaml'}: profile mine" in found.stderr
    assert "specify manifest files" in CliRunner().invoke(simulate, ["profiles"]).stderr


def test_without_pods_there_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")
    result = CliRunner().invoke(simulate, ["profiles", str(tmp_path / "nodes.yaml")])
    assert (result.exit_code, result.stdout) == (0, "No pod of the manifests waits for a node.\n")


GANG = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
"""


def test_the_version_of_kubernetes_selects_the_rules(tmp_path: Path) -> None:
    pods = GANG + pod("a", "default-scheduler", "1", ", schedulingGroup: {podGroupName: gang}")
    pods += pod("b", "default-scheduler", "9", ", schedulingGroup: {podGroupName: gang}")
    options = ("--feature-gates", "GenericWorkload=true", "--kubernetes-version")
    plain = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    whole = simulated(tmp_path, pods, *options, "1.37", config=plain)
    assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in whole.stdout
    tmp_path = tmp_path / "again"
    tmp_path.mkdir()
    one_by_one = simulated(tmp_path, pods, *options, "1.36", config=plain)
    assert "n1" in one_by_one.stdout and "minCount" not in one_by_one.stdout, "1.36 has another gate for gangs"
    tmp_path = tmp_path / "again"
    tmp_path.mkdir()
    unknown = simulated(tmp_path, pods, *options, "soon", config=plain)
    assert unknown.exit_code == 2 and "write it as one of 1.36, 1.37" in unknown.stderr
