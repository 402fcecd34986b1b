"""Whatever a client sends, it gets a Status and never a fault of ours (500 InternalError)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.sandbox.clients import APPLY, JSON_PATCH, MERGE, STRATEGIC, Http

CORE, APPS, VOLCANO = (
    "/api/v1/namespaces/default",
    "/apis/apps/v1/namespaces/default",
    "/apis/batch.volcano.sh/v1alpha1",
)
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (
        CORE + "/pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "labels": {"a": "b"},
                "annotations": {"k": "v"},
                "finalizers": ["e.com/x"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}],
            },
            "spec": {
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
                "schedulingGates": [{"name": "g"}],
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                            ]
                        }
                    },
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "h"}]},
                },
                "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "x"}}]}}],
                "initContainers": [{"name": "i", "image": "x"}],
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "ports": [{"containerPort": 80}],
                        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                        "livenessProbe": {"httpGet": {"port": 80}},
                    }
                ],
            },
        },
    ),
    (
        APPS + "/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "p"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "strategy": {"type": "Recreate"}},
        },
    ),
    (
        CORE + "/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "p"},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
        },
    ),
    (
        VOLCANO + "/namespaces/default/jobs",
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "p"},
            "spec": {
                "minAvailable": 1,
                "plugins": {"svc": []},
                "policies": [{"event": "PodFailed", "action": "RestartJob"}],
                "volumes": [{"mountPath": "/x"}],
                "tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE, "dependsOn": {"name": ["x"]}}],
            },
        },
    ),
    (
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "p"},
            "spec": {"weight": 1, "capability": {"cpu": "4"}, "parent": "root"},
        },
    ),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "p"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
                    }
                },
            },
        },
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "ps.e.com"},
            "spec": {
                "group": "e.com",
                "scope": "Namespaced",
                "names": {"plural": "ps", "kind": "P"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
                        "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
                    }
                ],
            },
        },
    ),
]
JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "é\u0000",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {"b": []}},
    "9" * 400,
]


def mutated(value: Any, chance: random.Random) -> Any:
    """A copy with one place turned into something else."""
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, item in items:
            places.append((node, key))
            collect(item)

    copy = json.loads(json.dumps(value))
    collect(copy)
    for _ in range(chance.choice((1, 1, 2))):
        node, key = chance.choice(places)
        try:
            if chance.random() < 0.2:
                del node[key]
            elif chance.random() < 0.2 and isinstance(node, list):
                node.append(node[key])
            else:
                node[key] = chance.choice(JUNK)
        except (KeyError, IndexError):
            pass
    return copy


@pytest.mark.parametrize("seed", range(6))
async def test_mutated_objects_never_break_the_server(api: Http, seed: int) -> None:
    chance = random.Random(seed)
    good = dict(OBJECTS)
    for path, body in OBJECTS:
        await api.call("POST", path, body)
    for _ in range(150):
        path, body = chance.choice(OBJECTS)
        name = good[path]["metadata"]["name"]
        sent = mutated(body, chance)
        kind = chance.choice(("POST", "PUT", MERGE, STRATEGIC, APPLY, JSON_PATCH))
        if kind == "POST":
            status, answer = await api.call("POST", path + "?dryRun=All", sent)
        elif kind == "PUT":
            status, answer = await api.call("PUT", f"{path}/{name}?dryRun=All", sent)
        else:
            if kind == JSON_PATCH:
                where = chance.choice(
                    ("/spec", "/metadata", "/metadata/labels", "/spec/template", "", "/spec/0/-", "x")
                )
                sent = [{"op": chance.choice(("add", "replace", "remove", "copy", "test")), "path": where}]
                sent[0][chance.choice(("value", "from"))] = chance.choice(JUNK)
            query = "?dryRun=All" + ("&fieldManager=m&force=true" if kind == APPLY else "")
            status, answer = await api.call("PATCH", f"{path}/{name}{query}", sent, kind)
        assert isinstance(answer, dict), (path, kind, sent, answer)
        assert answer.get("reason") != "InternalError", (path, kind, sent, answer)
        assert status < 500 or "Error" not in str(answer.get("message", ""))[:20], (path, kind, sent, answer)


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=!",
        "labelSelector=a+in+(",
        "fieldSelector=x",
        "fieldSelector=metadata.name",
        "limit=x",
        "limit=-5",
        "continue=%00",
        "continue=eyJydiI6MX0",
        "resourceVersion=x",
        "watch=1&resourceVersion=x",
        "watch=1&timeoutSeconds=x",
        "resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Exact",
    ],
)
async def test_odd_queries_are_answered(api: Http, query: str) -> None:
    status, answer = await api.call("GET", f"{CORE}/pods?{query}")
    assert isinstance(answer, dict) and answer.get("reason") != "InternalError", (status, answer)


@pytest.mark.parametrize(
    "path", ["/", "//", "/api/", "/apis//", "/api/v1/namespaces/%2e%2e/pods", "/%ff", "/apis/a/b/c/d/e/f"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_odd_paths_are_answered(api: Http, method: str, path: str) -> None:
    status, answer = await api.call(method, path, {})
    assert status in (200, 400, 404, 405, 415), (status, answer)


async def test_odd_protobuf_is_rejected(api: Http) -> None:
    kind = "application/vnd.kubernetes.protobuf"
    for body in (b"", b"k8s\x00", b"k8s\x00\xff\xff\xff", b"{}", b"k8s\x00\n\x0b\n\x02v1\x12\x05Thing"):
        status, answer = await api.call("POST", CORE + "/configmaps", body, kind)
        assert status in (400, 422) and answer["kind"] == "Status", (body, answer)
