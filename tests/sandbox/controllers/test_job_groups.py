"""Jobs with groups: Workload and PodGroup of a Job, as the job controller of Kubernetes 1.37 creates them."""

from __future__ import annotations

from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http
from tests.sandbox.controllers.objects import BATCH

APIS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GANG = {"gang": {"minCount": 2}}
Object = dict[str, Any]


@pytest.fixture
def api(groups_api: Http) -> Http:
    return groups_api


def job(name: str = "train", *, group: str = "", owner: str = "", **spec: Any) -> Object:
    containers = [{"name": "c", "image": "busybox:1", "command": ["sleep", "600"]}]
    template: Object = {"containers": containers, "restartPolicy": "Never", "schedulerName": "another-scheduler"}
    if group:
        template["schedulingGroup"] = {"podGroupName": group}
    metadata: Object = {"name": name, "labels": {"volcano.sh/queue-name": "team", "app": "x"}}
    if owner:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata, "spec": {"parallelism": 3, "template": {"spec": template}, **spec}}


async def items(api: Http, path: str) -> list[Object]:
    code, found = await api.call("GET", path)
    assert code == 200
    rows: list[Object] = found["items"]
    return rows


async def pods(api: Http, count: int) -> list[Object]:
    async def there() -> bool:
        return len(await items(api, PODS)) == count

    await waiting.until(there, f"there are not {count} pods")
    return await items(api, PODS)


async def test_a_job_gets_a_workload_and_a_pod_group_that_its_pods_name(api: Http) -> None:
    topology = {"topology": [{"key": "zone"}]}
    scheduling = {"schedulingPolicy": GANG, "schedulingConstraints": topology, "disruptionMode": {"all": {}}}
    code, made = await api.call("POST", f"{BATCH}/jobs", job(scheduling=scheduling))
    assert code == 201 and made["spec"]["scheduling"] == scheduling
    names = {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in await pods(api, 3)}
    (workload,), (group,) = await items(api, f"{APIS}/workloads"), await items(api, f"{APIS}/podgroups")
    assert names == {group["metadata"]["name"]}
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "train"}
    (template,) = workload["spec"]["podGroupTemplates"]
    assert template["name"] == "train-pgt-0" and template["schedulingPolicy"] == GANG
    of = group["spec"]
    assert of["workloadRef"] == {"workloadName": workload["metadata"]["name"], "templateName": "train-pgt-0"}
    assert (of["schedulingPolicy"], of["schedulingConstraints"], of["disruptionMode"]) == (GANG, topology, {"all": {}})
    assert group["metadata"]["labels"] == {"volcano.sh/queue-name": "team"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [(None, {"basic": {}}), ({"schedulingPolicy": {"gang": {}}}, {"gang": {"minCount": 3}})],
)
async def test_the_policy_without_values(api: Http, scheduling: Object | None, expected: Object) -> None:
    spec = {} if scheduling is None else {"scheduling": scheduling}
    assert (await api.call("POST", f"{BATCH}/jobs", job(**spec)))[0] == 201
    await pods(api, 3)
    (group,) = await items(api, f"{APIS}/podgroups")
    assert group["spec"]["schedulingPolicy"] == expected


async def test_only_the_minimum_changes_and_workload_and_group_follow(api: Http) -> None:
    await api.call("POST", f"{BATCH}/jobs", job(scheduling={"schedulingPolicy": GANG}))
    await pods(api, 3)
    more = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    code, _ = await api.call("PATCH", f"{BATCH}/jobs/train", {"spec": {"scheduling": more}}, kind=MERGE)
    assert code == 200

    async def followed() -> bool:
        (group,), (workload,) = await items(api, f"{APIS}/podgroups"), await items(api, f"{APIS}/workloads")
        found = (group["spec"]["schedulingPolicy"], workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"])
        return found == (more["schedulingPolicy"], more["schedulingPolicy"])

    await waiting.until(followed, "workload and group do not follow")
    change = {"spec": {"scheduling": {"disruptionMode": {"all": {}}}}}
    code, error = await api.call("PATCH", f"{BATCH}/jobs/train", change, kind=MERGE)
    assert code == 422 and "disruptionMode: Invalid value: null: field is immutable" in error["message"]


@pytest.mark.parametrize("case", ["names a group", "has a controller"])
async def test_a_pod_never_gets_a_second_group(api: Http, case: str) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    _, owner = await api.call("POST", maps, {"metadata": {"name": "owner"}})
    made = job(group="mine") if case == "names a group" else job(owner=owner["metadata"]["uid"])
    assert (await api.call("POST", f"{BATCH}/jobs", made))[0] == 201
    groups = {(pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in await pods(api, 3)}
    assert groups == {"mine" if case == "names a group" else None}
    assert await items(api, f"{APIS}/podgroups") == [] == await items(api, f"{APIS}/workloads")


async def test_a_suspended_job_gets_its_group_when_it_is_resumed(api: Http) -> None:
    await api.call("POST", f"{BATCH}/jobs", job(suspend=True, scheduling={"schedulingPolicy": GANG}))
    await api.call("PATCH", f"{BATCH}/jobs/train", {"spec": {"suspend": False}}, kind=MERGE)
    assert all(pod["spec"].get("schedulingGroup") for pod in await pods(api, 3))


async def test_the_groups_go_with_the_job(api: Http) -> None:
    await api.call("POST", f"{BATCH}/jobs", job(scheduling={"schedulingPolicy": GANG}))
    await pods(api, 3)
    await api.call("DELETE", f"{BATCH}/jobs/train?propagationPolicy=Background")

    async def gone() -> bool:
        return not (await items(api, f"{APIS}/podgroups") or await items(api, f"{APIS}/workloads"))

    await waiting.until(gone, "the groups stay")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"gang": {"minCount": 0}}, "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value"),
        ({"gang": {}, "basic": {}}, "must specify exactly one of: `basic`, `gang`"),
    ],
)
async def test_an_invalid_policy_is_rejected(api: Http, policy: Object, message: str) -> None:
    code, error = await api.call("POST", f"{BATCH}/jobs", job(scheduling={"schedulingPolicy": policy}))
    assert code == 422 and message in error["message"]


@pytest.mark.parametrize("gates", ["GenericWorkload=true"])
async def test_without_the_gate_the_field_is_dropped_and_there_are_no_groups(api: Http) -> None:
    code, made = await api.call("POST", f"{BATCH}/jobs", job(scheduling={"schedulingPolicy": GANG}))
    assert code == 201 and "scheduling" not in made["spec"]
    assert all("schedulingGroup" not in pod["spec"] for pod in await pods(api, 3))
    assert await items(api, f"{APIS}/podgroups") == []
