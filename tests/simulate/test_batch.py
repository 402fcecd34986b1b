"""A case a line: what one leaves out is as on the command line, and one that cannot be run stops no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from volcano_py.cli.simulate import simulate
from volcano_py.simulate import batch
from volcano_py.simulate.batch import Defaults, run_lines

CONF = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]"
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 1, "memory": "1Gi", "pods": 5}}}
POD = {
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]},
}


def results(*cases: Any, defaults: Defaults = Defaults(CONF)) -> list[dict[str, Any]]:
    lines = [c if isinstance(c, bytes) else orjson.dumps(c) for c in cases]
    return [orjson.loads(line) for line in run_lines(lines, defaults)]


def test_what_a_case_leaves_out_is_as_on_the_command_line() -> None:
    [found] = results({"objects": [NODE, POD]}, defaults=Defaults(CONF, cycles=2))
    assert found["id"] == "line 1"
    assert [c["bound"] for c in found["cycles"]] == [{"default/p": "n"}, {}]


def test_the_options_of_a_case_win() -> None:
    said = {
        "id": 7,
        "objects": [NODE, POD],
        "cycles": 1,
        "conf": CONF.replace("enqueue, ", ""),
        "options": {"raw": True},
    }
    [found] = results(said, defaults=Defaults(CONF, cycles=3))
    assert found["id"] == 7 and [c["bound"] for c in found["cycles"]] == [{}], "raw: a bare pod has no group"


@pytest.mark.parametrize(
    ("case", "error"),
    [
        (b"{", "not valid JSON"),
        ([], "a case must be a JSON object"),
        ({"conf": "actions: nope"}, 'failed to find Action "nope"'),
        ({"conf": "["}, "not valid YAML"),
        ({"objects": {}}, "Expected `array | null`, got `object` - at `$.objects`"),
        ({"objects": [3]}, "objects[0]: a document is not a Kubernetes object"),
        ({"seed": "x"}, "$.seed"),
        ({"cycles": [1]}, "$.cycles"),
        ({"options": {"rwa": True}}, "unknown field `rwa`"),
    ],
    ids=str,
)
def test_a_case_that_cannot_be_run_reports_why_and_the_next_one_runs(case: Any, error: str) -> None:
    bad, good = results(case, {"id": "good", "objects": [NODE, POD]})
    assert error in bad["error"]
    assert good["cycles"][0]["bound"] == {"default/p": "n"}


def test_an_object_that_cannot_be_used_is_named_and_the_others_are_scheduled() -> None:
    odd = {"kind": "Pod", "metadata": {"name": "odd"}, "spec": 3}
    [found] = results({"objects": [NODE, odd, POD]})
    assert found["cycles"][0]["bound"] == {"default/p": "n"}
    assert found["rejected"] == ["Pod odd: Expected `object`, got `int` - at `$.spec`"]


def test_a_result_has_the_statuses_of_groups_and_queues_after_the_cycle() -> None:
    groups = [
        {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}},
        {"kind": "PodGroup", "metadata": {"name": "homeless"}, "spec": {"minMember": 1, "queue": "nowhere"}},
    ]
    member = {**POD, "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}}}
    [found] = results({"objects": [NODE, member, *groups], "cycles": 2})
    first, second = found["cycles"]
    assert first["phases"] == {"default/g": "Inqueue", "default/homeless": "Pending"}
    assert second["phases"] == {"default/g": "Running", "default/homeless": "Pending"}
    reason = "tasks in gang are ready to be scheduled"
    assert first["conditions"] == {
        "default/g": [{"type": "Scheduled", "status": "True", "reason": reason, "message": "the minimum is reached: 1"}]
    }
    held = {"cpu": "1", "memory": "0", "pods": "1"}
    assert first["allocated"] == second["allocated"] == {"default": held, "root": held}


def test_members_of_a_list_are_of_its_kind() -> None:
    """So the API server writes them: what kubectl get --raw prints."""
    items = [{k: v for k, v in NODE.items() if k != "kind"}]
    [found] = results({"objects": [{"kind": "NodeList", "items": items}, {"kind": "QueueList", "items": None}, POD]})
    assert found["cycles"][0]["bound"] == {"default/p": "n"}


def test_a_group_as_it_is_without_a_queue_is_in_that_of_the_command_line() -> None:
    """No API server has written the default of the schema into it."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {}}
    objects = [{"kind": "Queue", "metadata": {"name": "mine"}}, group]
    [found] = results({"objects": objects, "options": {"raw": True, "defaultQueue": "mine"}})
    assert found["cycles"][0]["phases"] == {"default/g": "Completed"}


def test_an_internal_error_stops_no_other_case(monkeypatch: pytest.MonkeyPatch) -> None:
    real = batch.Simulation

    def faulty(manifests: list[Any], **rest: Any) -> Any:
        if not manifests:
            raise RuntimeError("boom")
        return real(manifests, **rest)

    monkeypatch.setattr(batch, "Simulation", faulty)
    bad, good = results({"objects": []}, {"objects": [NODE, POD]})
    assert bad["error"] == "internal error of volcano-py, please report it: RuntimeError: boom" and "cycles" in good


def test_cases_come_from_files_or_standard_input(tmp_path: Path) -> None:
    lines = b"".join(orjson.dumps({"id": i, "objects": [NODE, POD]}) + b"\n" for i in (1, 2))
    (tmp_path / "cases.jsonl").write_bytes(lines)
    given = [
        CliRunner().invoke(simulate, ["run", "--jsonl", *files], input=lines)
        for files in ([], ["-"], [str(tmp_path / "cases.jsonl")])
    ]
    assert [orjson.loads(line)["id"] for line in given[0].stdout_bytes.splitlines()] == [1, 2]
    assert len({g.stdout_bytes for g in given}) == 1


def test_a_queue_does_not_hold_what_was_only_tried() -> None:
    """Two GPUs where there is one: what the first got for a moment leaves no trace, not even a zero."""
    gpu = "nvidia.com/gpu"
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 4, "pods": 5, gpu: 1}}}

    def member(name: str, **requests: int) -> dict[str, Any]:
        containers = [{"name": "c", "resources": {"requests": requests}}]
        meta = {"name": name, "annotations": {"scheduling.k8s.io/group-name": "g"}}
        return {"kind": "Pod", "metadata": meta, "spec": {"containers": containers}}

    runs = member("g-a-0", cpu=1)
    runs["spec"] |= {"nodeName": "n", "schedulerName": "volcano"}
    runs["status"] = {"phase": "Running"}
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    [found] = results({"objects": [node, group, runs, *(member(f"g-a-{i}", **{gpu: 1}) for i in (1, 2))]})
    [cycle] = found["cycles"]
    assert cycle["bound"] == {} and "1 Schedulable" in cycle["conditions"]["default/g"][0]["message"]
    assert cycle["allocated"]["default"] == {"cpu": "1", "memory": "0", "pods": "1"}


def test_ignored_kinds_are_named() -> None:
    objects = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}},
        {"kind": "Widget", "metadata": {"name": "w"}},
    ]
    ran = CliRunner().invoke(simulate, ["run", "--jsonl"], input=json.dumps({"id": "a", "objects": objects}))
    assert json.loads(ran.stdout)["ignoredKinds"] == ["Deployment", "Widget"]


def test_hyper_nodes_without_their_plugin_are_a_warning(tmp_path: Path) -> None:
    spec = {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]}
    (tmp_path / "x.yaml").write_text(json.dumps({"kind": "HyperNode", "metadata": {"name": "s"}, "spec": spec}))
    plugins = [{"plugins": [{"name": "gang"}, {"name": "network-topology-aware"}]}]
    (tmp_path / "conf").write_text(json.dumps({"actions": "allocate", "tiers": plugins}))
    text = "HyperNodes have no effect: the configuration lacks the plugin network-topology-aware"
    assert text in " ".join(CliRunner().invoke(simulate, ["run", str(tmp_path / "x.yaml")]).stderr.split())
    with_plugin = CliRunner().invoke(simulate, ["run", "--conf", str(tmp_path / "conf"), str(tmp_path / "x.yaml")])
    assert "HyperNodes" not in with_plugin.stderr
