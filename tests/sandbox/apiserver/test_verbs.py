"""Create, read, update, patch, delete: what generic clients rely on."""

from __future__ import annotations

import asyncio

import pytest

from tests.sandbox.clients import (
    APPLY,
    CONFIGMAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    Http,
    pod,
)


def config_map(name: str, **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_new_pod_gets_the_servers_defaults(api: Http) -> None:
    made = await api.ok("POST", PODS, pod("a"))
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always" and spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst" and spec["schedulerName"] == "default-scheduler"
    assert spec["priority"] == 0 and spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert [row["key"] for row in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["uid"] and made["metadata"]["generation"] == 1


async def test_priority_comes_from_the_class(api: Http) -> None:
    made = await api.ok("POST", PODS, pod("a", priorityClassName="system-cluster-critical"))
    assert made["spec"]["priority"] == 2_000_000_000
    status, answer = await api.call("POST", PODS, pod("b", priorityClassName="none"))
    assert status == 403 and "no PriorityClass with name none was found" in answer["message"]


async def test_names_can_be_generated(api: Http) -> None:
    body = pod("")
    body["metadata"] = {"generateName": "w-"}
    names = {(await api.ok("POST", PODS, body))["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20 and all(len(name) == 7 and name.startswith("w-") for name in names)


async def test_faults_are_listed_with_their_fields(api: Http) -> None:
    bad = pod("a", restartPolicy="Sometimes")
    bad["spec"]["containers"] = [{"name": "C_"}]
    status, answer = await api.call("POST", PODS, bad)
    assert status == 422 and answer["reason"] == "Invalid"
    causes = {(row["reason"], row["field"]) for row in answer["details"]["causes"]}
    assert causes == {
        ("FieldValueInvalid", "spec.containers[0].name"),
        ("FieldValueRequired", "spec.containers[0].image"),
        ("FieldValueNotSupported", "spec.restartPolicy"),
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [("{", 400), ("[]", 400), ("null", 422), ('{"metadata": 5}', 400), ("\x00", 400), ("[" * 100_000, 400)],
)
async def test_nonsense_is_rejected_with_a_status(api: Http, body: str, status: int) -> None:
    code, answer = await api.call("POST", CONFIGMAPS, body)
    assert code == status and answer["kind"] == "Status" and "Traceback" not in answer["message"]


async def test_the_second_writer_of_a_revision_loses(api: Http) -> None:
    first = await api.ok("POST", CONFIGMAPS, config_map("a", k="1"))
    second = {**first, "data": {"k": "2"}}
    await api.ok("PUT", CONFIGMAPS + "/a", second)
    status, answer = await api.call("PUT", CONFIGMAPS + "/a", {**first, "data": {"k": "3"}})
    assert status == 409 and answer["reason"] == "Conflict"
    assert (await api.ok("GET", CONFIGMAPS + "/a"))["data"] == {"k": "2"}


async def test_a_write_that_changes_nothing_keeps_the_revision(api: Http) -> None:
    made = await api.ok("POST", CONFIGMAPS, config_map("a", k="1"))
    same = await api.ok("PATCH", CONFIGMAPS + "/a", {"data": {"k": "1"}}, MERGE)
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_patches_of_three_kinds(api: Http) -> None:
    await api.ok("POST", PODS, pod("a", tolerations=[{"key": "x", "operator": "Exists"}]))
    path = PODS + "/a"
    merged = await api.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert merged["metadata"]["labels"] == {"a": "b"}
    added = await api.ok("PATCH", path, [{"op": "add", "path": "/metadata/labels/c", "value": "d"}], JSON_PATCH)
    assert added["metadata"]["labels"] == {"a": "b", "c": "d"}
    for misfit in ({"op": "remove", "path": "/nothing"}, {"op": "test", "path": "/metadata/name", "value": "b"}):
        status, answer = await api.call("PATCH", path, [misfit], JSON_PATCH)
        text = "the server rejected our request due to an error in our request"
        assert (status, answer["reason"], answer["message"], answer["details"]) == (422, "Invalid", text, {})
    image = {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}
    changed = await api.ok("PATCH", path, image, STRATEGIC)
    assert changed["spec"]["containers"][0]["image"] == "busybox:2"
    assert changed["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert changed["metadata"]["generation"] == 2


async def test_a_running_pods_spec_is_fixed(api: Http) -> None:
    await api.ok("POST", PODS, pod("a"))
    status, answer = await api.call("PATCH", PODS + "/a", {"spec": {"schedulerName": "other"}}, MERGE)
    assert status == 422 and answer["details"]["causes"][0]["reason"] == "FieldValueForbidden"


async def test_apply_creates_owns_and_reports_conflicts(api: Http) -> None:
    path = CONFIGMAPS + "/a?fieldManager="
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "1"}}
    await api.ok("PATCH", path + "one", body, APPLY)
    status, answer = await api.call("PATCH", path + "two", {**body, "data": {"x": "2"}}, APPLY)
    assert status == 409 and answer["details"]["causes"][0]["field"] == ".data.x"
    await api.ok("PATCH", path + "two&force=true", {**body, "data": {"x": "2"}}, APPLY)
    last = await api.ok("PATCH", path + "one", {**body, "data": {}}, APPLY)
    assert last["data"] == {"x": "2"}, "a field without managers goes, that of another manager stays"


@pytest.mark.parametrize(("value", "status"), [("Ignore", 201), ("Warn", 201), ("Strict", 400)])
async def test_unknown_fields_are_handled_as_requested(api: Http, value: str, status: int) -> None:
    body = pod("a", wrong="x")
    code, answer, headers = await api.full("POST", f"{PODS}?fieldValidation={value}", body)
    assert code == status
    warned = any('unknown field \\"spec.wrong\\"' in text for text in headers.getall("Warning", []))
    assert warned is (value == "Warn")
    if status == 201:
        assert "wrong" not in answer["spec"]


async def test_a_dry_run_leaves_nothing(api: Http) -> None:
    made = await api.ok("POST", PODS + "?dryRun=All", pod("a"))
    assert made["spec"]["restartPolicy"] == "Always"
    assert (await api.call("GET", PODS + "/a"))[0] == 404


async def test_lists_select_and_page(api: Http) -> None:
    for index in range(7):
        body = config_map(f"c{index}")
        body["metadata"]["labels"] = {"half": str(index % 2)}
        await api.ok("POST", CONFIGMAPS, body)
    chosen = await api.ok("GET", CONFIGMAPS + "?labelSelector=half%20in%20(1),half!=2")
    assert [item["metadata"]["name"] for item in chosen["items"]] == ["c1", "c3", "c5"]
    seen, token = [], ""
    while True:
        page = await api.ok("GET", f"{CONFIGMAPS}?limit=3&continue={token}")
        seen += [item["metadata"]["name"] for item in page["items"]]
        if not token:
            # a list in pages shows the state of its first page
            await api.ok("DELETE", CONFIGMAPS + "/c6")
            await api.ok("POST", CONFIGMAPS, config_map("c45"))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert seen == [f"c{index}" for index in range(7)]
    await api.ok("POST", PODS, pod("a", nodeName="node-0"))
    await api.ok("POST", PODS, pod("b"))
    bound = await api.ok("GET", PODS + "?fieldSelector=spec.nodeName=node-0")
    assert [item["metadata"]["name"] for item in bound["items"]] == ["a"]


async def test_finalizers_hold_an_object(api: Http) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await api.ok("POST", CONFIGMAPS, body)
    terminating = await api.ok("DELETE", CONFIGMAPS + "/a")
    assert terminating["metadata"]["deletionTimestamp"]
    assert (await api.call("GET", CONFIGMAPS + "/a"))[0] == 200
    await api.ok("PATCH", CONFIGMAPS + "/a", {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.call("GET", CONFIGMAPS + "/a"))[0] == 404


async def test_a_binding_assigns_a_pod_once(api: Http) -> None:
    await api.ok("POST", PODS, pod("a"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a", "annotations": {"k": "v"}},
        "target": {"kind": "Node", "name": "node-1"},
    }
    await api.ok("POST", PODS + "/a/binding", binding)
    bound = await api.ok("GET", PODS + "/a")
    assert bound["spec"]["nodeName"] == "node-1" and bound["metadata"]["annotations"] == {"k": "v"}
    assert any(row["type"] == "PodScheduled" and row["status"] == "True" for row in bound["status"]["conditions"])
    status, answer = await api.call("POST", PODS + "/a/binding", binding)
    assert status == 409 and "already assigned" in answer["message"]
    await api.ok("POST", PODS, pod("b"))
    other = {**binding, "metadata": {"name": "b", "uid": "11111111-0000-0000-0000-000000000000"}}
    assert (await api.call("POST", PODS + "/b/binding", other))[0] == 409


async def test_a_scale_can_be_applied(api: Http) -> None:
    body = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            },
        },
    }
    where = "/apis/apps/v1/namespaces/default/deployments"
    await api.ok("POST", f"{where}?fieldManager=me", body)
    config = "kind: Scale\napiVersion: autoscaling/v1\nmetadata: {name: d}\nspec: {replicas: 3}\n"
    status, answer = await api.call("PATCH", f"{where}/d/scale?fieldManager=auto", config, APPLY)
    assert status == 409 and answer["details"]["causes"][0]["field"] == ".spec.replicas"
    scale = await api.ok("PATCH", f"{where}/d/scale?fieldManager=auto&force=true", config, APPLY)
    assert scale["spec"]["replicas"] == 3
    status, answer = await api.call("PATCH", f"{where}/d/scale?fieldManager=other", config.replace("3", "4"), APPLY)
    assert status == 409 and 'conflict with "auto" with subresource "scale"' in answer["message"]


async def test_scale_is_a_scale(api: Http) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    await api.ok("POST", path, body)
    scale = await api.ok("PATCH", path + "/d/scale", {"spec": {"replicas": 4}}, MERGE)
    assert scale["kind"] == "Scale" and scale["spec"]["replicas"] == 4 and scale["status"]["selector"] == "a=b"
    assert (await api.ok("GET", path + "/d"))["spec"]["replicas"] == 4


async def test_events_have_two_views(api: Http) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "message": "m",
        "type": "Normal",
        "count": 2,
    }
    await api.ok("POST", "/api/v1/namespaces/default/events", body)
    new = await api.ok("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")
    assert new["note"] == "m" and new["regarding"]["name"] == "p" and new["deprecatedCount"] == 2
    found = await api.ok("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=p")
    assert len(found["items"]) == 1


async def test_a_namespace_goes_with_its_content(api: Http) -> None:
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await api.ok("POST", "/api/v1/namespaces/n/configmaps", config_map("a"))
    await api.ok("POST", "/api/v1/namespaces/n/pods", pod("p", nodeName="node-0"))
    await api.ok("DELETE", "/api/v1/namespaces/n")
    status, answer = await api.call("POST", "/api/v1/namespaces/n/configmaps", config_map("b"))
    assert status in (403, 404), answer
    await api.until("/api/v1/namespaces/n", lambda value: value.get("code") == 404)
    assert (await api.ok("GET", "/api/v1/namespaces/n/pods"))["items"] == []


async def test_unauthenticated_users_get_nothing(api: Http) -> None:
    assert (await api.call("GET", PODS, token="wrong"))[0] == 401
    status, answer = await api.call("GET", PODS, Authorization="")
    assert status == 403 and "system:anonymous" in answer["message"]
    assert (await api.call("GET", "/readyz", Authorization=""))[0] == 200


async def test_writers_in_parallel_lose_nothing(api: Http) -> None:
    await api.ok("POST", CONFIGMAPS, config_map("a"))

    async def add(index: int) -> None:
        await api.ok("PATCH", CONFIGMAPS + "/a", {"data": {f"k{index}": "v"}}, MERGE)

    await asyncio.gather(*(add(index) for index in range(50)))
    assert len((await api.ok("GET", CONFIGMAPS + "/a"))["data"]) == 50


async def test_logs_of_a_node_without_kubelet_are_denied(api: Http) -> None:
    await api.ok("POST", PODS, pod("a", nodeName="nowhere"))
    status, answer = await api.call("GET", PODS + "/a/log")
    assert status == 500 and "no kubelet runs on node nowhere" in answer["message"]
    await api.ok("POST", PODS, pod("b"))
    assert await api.call("GET", PODS + "/b/log") == (204, "")


async def test_only_pods_without_a_node_are_nominated(api: Http) -> None:
    """As in kube-apiserver 1.35 and later."""
    await api.ok("POST", PODS, pod("a"))
    nominated = {"status": {"nominatedNodeName": "n"}}
    await api.ok("PATCH", PODS + "/a/status", nominated, MERGE)
    target = {"target": {"kind": "Node", "name": "n"}, "metadata": {"name": "a"}}
    await api.ok("POST", PODS + "/a/binding", target)
    status, answer = await api.call("PATCH", PODS + "/a/status", nominated, MERGE)
    assert status == 422
    assert "may not be set on pods that are already bound to a node" in answer["message"]


async def test_negative_amounts_of_nodes_are_invalid(api: Http) -> None:
    await api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    status, answer = await api.call(
        "PATCH", "/api/v1/nodes/n/status", {"status": {"allocatable": {"cpu": "-1"}}}, MERGE
    )
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "status.allocatable.cpu")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("DELETE", "/api", 405),
        ("POST", "/api", 405),
        ("DELETE", "/api/v1", 405),
        ("DELETE", "/apis/apps/v1", 405),
        ("DELETE", "/apis", 200),
        ("DELETE", "/apis/apps", 200),
    ],
)
async def test_methods_of_discovery(api: Http, method: str, path: str, code: int) -> None:
    status, answer = await api.call(method, path)
    assert status == code
    if code == 405:
        text = "the server does not allow this method on the requested resource"
        assert (answer["reason"], answer["message"]) == ("MethodNotAllowed", text)
