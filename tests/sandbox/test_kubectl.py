"""The real kubectl against the sandbox, for built-in kinds and custom resources."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests import kubectl as programs
from tests import waiting
from tests.sandbox.clients import Http, Kubectl
from volcano_py.sandbox.cluster import Sandbox

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: node-1
  restartPolicy: Never
  containers:
  - name: c
    image: busybox:1
    command: [sh, -c, "echo hello; sleep 3600"]
    resources: {requests: {cpu: 500m, memory: 64Mi}}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 2
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: OnFailure
        containers: [{name: c, image: busybox, command: [sleep, "60"]}]
"""

QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: lab}}
spec: {{weight: {weight}}}
"""


KINDS = {"deployment": "Deployment", "statefulset": "StatefulSet", "replicaset": "ReplicaSet"}


@pytest.fixture(params=[pytest.param("everyday", marks=pytest.mark.slow), programs.NEWEST])
def kubectl(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path) -> Kubectl:
    """Two versions: that of every other test, and that which the sandbox imitates."""
    program = programs.newest() if request.param == programs.NEWEST else programs.find()
    if program is None:
        pytest.skip(f"no kubectl ({request.param}); python -m tests.kubectl fetches it")
    return Kubectl(sandbox, tmp_path, program)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_get_in_all_forms(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    path = "/api/v1/namespaces/default/pods/web"
    await api.until(path, lambda value: value["status"]["phase"] == "Running")
    header, row = rows(await kubectl("get", "pods"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "1/1", "Running", "0"]
    wide = rows(await kubectl("get", "pod", "web", "-o", "wide"))
    assert wide[1][6] == "node-1"
    assert json.loads(await kubectl("get", "pod", "web", "-o", "json"))["kind"] == "Pod"
    assert "nodeName: node-1" in await kubectl("get", "pods", "-o", "yaml")
    assert await kubectl("get", "pods", "-o", "name") == "pod/web\n"
    assert await kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}") == "Running"
    columns = await kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name,P:.status.phase")
    assert rows(columns) == [["N", "P"], ["web", "Running"]]
    assert rows(await kubectl("get", "pods", "-A", "-l", "app=web", "--sort-by=.metadata.name"))[1][1] == "web"
    assert "No resources found" in (await kubectl.run("get", "pods", "--field-selector=spec.nodeName=node-0"))[2]
    assert rows(await kubectl("get", "nodes"))[1][:2] == ["node-0", "Ready"]


async def test_get_w_shows_changes(kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "one", "--from-literal=a=b")
    watching = asyncio.create_task(kubectl.run("get", "configmaps", "-w", "--request-timeout=3s"))
    await asyncio.sleep(1)
    await kubectl("create", "configmap", "two", "--from-literal=a=b")
    _, out, _ = await watching
    assert [row[0] for row in rows(out)] == ["NAME", "one", "two"]


async def test_apply_edit_patch_and_delete(kubectl: Kubectl, tmp_path: Path) -> None:
    assert await kubectl("apply", "-f", "-", stdin=POD) == "pod/web created\n"
    assert await kubectl("apply", "-f", "-", stdin=POD) == "pod/web unchanged\n"
    changed = POD.replace("app: web", "app: shop")
    assert (await kubectl.run("diff", "-f", "-", stdin=changed))[0] == 1
    assert await kubectl("apply", "-f", "-", stdin=changed) == "pod/web configured\n"
    server_side = await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=POD)
    assert server_side == "pod/web serverside-applied\n"
    await kubectl("label", "pod", "web", "x=y")
    await kubectl("annotate", "pod", "web", "k=v")
    await kubectl("patch", "pod", "web", "-p", '{"spec":{"containers":[{"name":"c","image":"busybox:2"}]}}')
    await kubectl("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    await kubectl("patch", "pod", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/x"}]')
    pod = json.loads(await kubectl("get", "pod", "web", "-o", "json"))
    assert pod["metadata"]["labels"] == {"app": "web", "m": "1"}
    assert pod["metadata"]["annotations"]["k"] == "v"
    assert pod["spec"]["containers"][0]["image"] == "busybox:2"
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/busybox:2/busybox:3/' \"$1\"\n")
    editor.chmod(0o755)
    assert "pod/web edited" in await kubectl("edit", "pod", "web", EDITOR=str(editor))
    assert await kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}") == "busybox:3"
    assert (await kubectl("delete", "pod", "web")).startswith('pod "web" deleted')
    code, _, err = await kubectl.run("get", "pod", "web")
    assert code == 1 and 'pods "web" not found' in err


async def test_unknown_fields_are_rejected_before_and_after(kubectl: Kubectl) -> None:
    code, _, err = await kubectl.run("apply", "-f", "-", stdin=POD.replace("image:", "imagee:"))
    assert code == 1 and 'unknown field "spec.containers[0].imagee"' in err
    code, _, err = await kubectl.run("create", "-f", "-", stdin=JOB.replace("minAvailable", "minAvailabel"))
    assert code == 1 and 'unknown field "spec.minAvailabel"' in err
    code, _, err = await kubectl.run("create", "-f", "-", stdin=JOB.replace("restartPolicy", "restartPolicie"))
    assert code == 1 and 'unknown field "spec.tasks[0].template.spec.restartPolicie"' in err


async def test_an_undefined_kind_is_named(kubectl: Kubectl) -> None:
    unknown = JOB.replace("batch.volcano.sh/v1alpha1", "nosuch.example.com/v1")
    code, _, err = await kubectl.run("apply", "-f", "-", stdin=unknown)
    assert code == 1 and 'no matches for kind "Job" in version "nosuch.example.com/v1"' in err, err


async def test_typed_generators_send_protobuf(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "lab")
    lab = ("-n", "lab")
    await kubectl(*lab, "create", "secret", "generic", "s", "--from-literal=user=me")
    await kubectl(*lab, "create", "serviceaccount", "sa")
    await kubectl(*lab, "create", "quota", "q", "--hard=pods=5,count/secrets=9")
    await kubectl(*lab, "create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80")
    await kubectl(*lab, "create", "job", "once", "--image=busybox", "--", "sleep", "1")
    await kubectl(*lab, "create", "cronjob", "often", "--image=busybox", "--schedule=*/5 * * * *")
    await kubectl(*lab, "create", "role", "r", "--verb=get,list", "--resource=pods")
    await kubectl(*lab, "create", "rolebinding", "rb", "--role=r", "--user=me")
    await kubectl(*lab, "run", "tool", "--image=busybox", "--restart=Never", "--", "sleep", "5")
    await kubectl(*lab, "expose", "deployment", "web")
    await kubectl("create", "priorityclass", "high", "--value=1000", "--description=text")
    secret = json.loads(await kubectl(*lab, "get", "secret", "s", "-o", "json"))
    assert secret["data"] == {"user": "bWU="} and secret["type"] == "Opaque"
    deployment = json.loads(await kubectl(*lab, "get", "deployment", "web", "-o", "json"))
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] == 80
    quota = json.loads(await kubectl(*lab, "get", "quota", "q", "-o", "json"))
    assert quota["spec"]["hard"] == {"count/secrets": "9", "pods": "5"}
    assert json.loads(await kubectl("get", "pc", "high", "-o", "json"))["value"] == 1000
    assert rows(await kubectl(*lab, "get", "deploy,job,cronjob,svc"))
    await kubectl("delete", "namespace", "lab")
    assert (await kubectl.run("get", "namespace", "lab"))[0] == 1


async def test_nodes_can_be_cordoned_tainted_and_drained(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    await kubectl("cordon", "node-1")
    assert rows(await kubectl("get", "node", "node-1"))[1][1] == "Ready,SchedulingDisabled"
    await kubectl("taint", "node", "node-1", "k=v:NoSchedule")
    node = json.loads(await kubectl("get", "node", "node-1", "-o", "json"))
    assert {"key": "k", "value": "v", "effect": "NoSchedule"} in node["spec"]["taints"]
    await kubectl("taint", "node", "node-1", "k-")
    assert "evicted" in await kubectl("drain", "node-1", "--force", waiting.KUBECTL)
    assert (await kubectl.run("get", "pod", "web"))[0] == 1
    await kubectl("uncordon", "node-1")
    assert rows(await kubectl("get", "node", "node-1"))[1][1] == "Ready"


async def test_describe_events_logs_and_wait(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    await kubectl("wait", "--for=condition=Ready", "pod/web", waiting.KUBECTL)
    await kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/web", waiting.KUBECTL)
    uid = (await api.ok("GET", "/api/v1/namespaces/default/pods/web"))["metadata"]["uid"]
    event = {
        "metadata": {"name": "web.1"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default", "uid": uid},
        "reason": "Noted",
        "message": "something happened",
        "type": "Normal",
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:00Z",
        "count": 1,
    }
    await api.ok("POST", "/api/v1/namespaces/default/events", event)
    text = await kubectl("describe", "pod", "web")
    assert "Node:" in text and "node-1" in text and "something happened" in text
    assert "something happened" in await kubectl("events", "--for", "pod/web")
    assert "cpu" in await kubectl("describe", "node", "node-1")
    assert await kubectl("logs", "web") == "hello\n"
    deleting = asyncio.create_task(kubectl("wait", "--for=delete", "pod/web", waiting.KUBECTL))
    await asyncio.sleep(0.3)
    await kubectl("delete", "pod", "web", "--wait=false")
    await deleting


async def test_discovery_and_explain(kubectl: Kubectl) -> None:
    resources = await kubectl("api-resources")
    for line in ("vcjob,vj", "pg,podgroup-v1beta1", "deploy", "netpol"):
        assert line in resources
    assert "batch.volcano.sh/v1alpha1" in await kubectl("api-versions")
    assert "FIELDS:" in await kubectl("explain", "pods.spec")
    assert "containers" in await kubectl("explain", "pods", "--recursive")
    assert "KIND:       Job" in await kubectl("explain", "vcjob.spec.tasks", "--api-version=batch.volcano.sh/v1alpha1")
    assert await kubectl("auth", "can-i", "create", "vcjobs") == "yes\n"
    assert "admin" in await kubectl("auth", "whoami")
    assert await kubectl("get", "--raw", "/readyz") == "ok"
    assert "Server Version: v1.36" in await kubectl("version")


async def test_custom_resources(kubectl: Kubectl) -> None:
    assert await kubectl("apply", "-f", "-", stdin=JOB) == "job.batch.volcano.sh/train created\n"
    header, row = rows(await kubectl("get", "vcjob"))
    assert header[:3] == ["NAME", "STATUS", "MINAVAILABLE"] and row[0] == "train"
    queue = QUEUE.format(weight=2)
    assert await kubectl("apply", "-f", "-", stdin=queue) == "queue.scheduling.volcano.sh/lab created\n"
    assert await kubectl("apply", "-f", "-", stdin=queue) == "queue.scheduling.volcano.sh/lab unchanged\n"
    heavier = QUEUE.format(weight=3)
    assert await kubectl("apply", "-f", "-", stdin=heavier) == "queue.scheduling.volcano.sh/lab configured\n"
    assert await kubectl("get", "queue", "lab", "-o", "jsonpath={.spec.weight}") == "3"
    await kubectl("patch", "vj", "train", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
    replicas = '[{"op":"replace","path":"/spec/tasks/0/replicas","value":3}]'
    await kubectl("patch", "vj", "train", "--type=json", "-p", replicas)
    await kubectl("patch", "vj", "train", "--subresource=status", "--type=merge", "-p", '{"status":{"running":2}}')
    job = json.loads(await kubectl("get", "vj", "train", "-o", "json"))
    assert job["spec"]["tasks"][0]["replicas"] == 3 and job["spec"]["minAvailable"] == 1
    assert job["status"]["running"] == 2
    assert "Kind:         Job" in await kubectl("describe", "vcjob", "train")
    assert [row[0] for row in rows(await kubectl("get", "queues"))] == ["NAME", "default", "lab", "root"]
    await kubectl("delete", "vcjob", "train")
    assert (await kubectl.run("get", "vcjob", "train"))[0] == 1


@pytest.mark.parametrize("kind", ["deployment", "statefulset", "replicaset"])
async def test_workloads_scale(kubectl: Kubectl, kind: str) -> None:
    manifest = f"""
apiVersion: apps/v1
kind: {KINDS[kind]}
metadata: {{name: w}}
spec:
  selector: {{matchLabels: {{a: b}}}}
  template:
    metadata: {{labels: {{a: b}}}}
    spec: {{containers: [{{name: c, image: nginx}}]}}
"""
    await kubectl("create", "-f", "-", stdin=manifest)
    await kubectl("scale", kind, "w", "--replicas=3")
    assert await kubectl("get", kind, "w", "-o", "jsonpath={.spec.replicas}") == "3"
