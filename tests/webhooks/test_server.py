"""The webhook server over HTTP: reviews in, answers out, and no input that it does not survive."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api import names
from volcano_py.webhooks import server
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import PATHS, AdmissionContext, Path, Verdict
from volcano_py.webhooks.review import answer, json_patch

OPEN = {"metadata": {"name": "default"}, "spec": {}, "status": {"state": "Open"}}
AROUND = AdmissionContext(queues=QueueIndex([OPEN]))
JSON = "application/json"


def job(**spec):
    task = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    return {"metadata": {"name": "train", "namespace": "lab"}, "spec": {"queue": "default", "tasks": [task]} | spec}


def review(obj, operation="CREATE", uid="u-1", **request):
    request = {"uid": uid, "operation": operation, "object": obj, "namespace": "lab"} | request
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


@asynccontextmanager
async def serving(paths=tuple(PATHS), around=AROUND, **options):
    app = server.application(lambda: around, paths, **options)
    async with server.listening(app, "127.0.0.1", 0, None) as port, aiohttp.ClientSession() as session:

        async def post(path, body, content_type=JSON):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            async with session.post(
                f"http://127.0.0.1:{port}{path}", data=data, headers={"Content-Type": content_type}
            ) as response:
                text = await response.read()
                return response.status, json.loads(text) if response.content_type == JSON else text.decode()

        yield post


async def test_allowed_rejected_and_patched():
    async with serving() as post:
        status, allowed = await post("/jobs/validate", review(job(minAvailable=1)))
        assert status == 200
        assert allowed["response"] == {"uid": "u-1", "allowed": True}
        _, denied = await post("/jobs/validate", review(job(minAvailable=3)))
        assert denied["response"]["allowed"] is False
        assert denied["response"]["status"]["message"] == (
            "job lab/train: spec.minAvailable: Invalid value: 3: job 'minAvailable' should not be greater than "
            "total replicas in tasks; they are 2"
        )
        _, patched = await post("/jobs/mutate", review(job()))
        assert patched["response"]["patchType"] == "JSONPatch"
        operations = json.loads(base64.b64decode(patched["response"]["patch"]))
        assert {"op": "add", "path": "/spec/minAvailable", "value": 2} in operations


async def test_what_is_no_review_of_ours():
    async with serving(["/jobs/validate"]) as post:
        assert (await post("/jobs/mutate", review(job())))[0] == 404
        assert (await post("/jobs/validate", b"{}", "text/plain"))[0] == 415
        for body, words in (
            (b'{"kind": "Admiss', "invalid AdmissionReview"),
            (b"[" * 5000, "invalid AdmissionReview"),
            ([], "must be an AdmissionReview"),
            ({"kind": "Pod"}, "must be an AdmissionReview"),
            ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}, "admissionReviewVersions"),
            ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": None}, "contains no request"),
            (review(job(), uid=7), "request.uid"),
            (review([1]), "request.object"),
            (review(job(), operation="CONNECT"), "expect operation to be"),
            (review(None), "request.object is missing"),
        ):
            status, answered = await post("/jobs/validate", body)
            assert status == 200
            assert answered["response"]["allowed"] is False
            assert words in answered["response"]["status"]["message"]


async def test_size_is_bounded():
    async with serving() as post:
        status, text = await post("/jobs/validate", review(job(comment="x" * (3 << 20))))
        assert status == 413
        assert "reduce the object" in text
        status, _ = await post("/jobs/validate", review(job(comment="x" * (900 << 10))))
        assert status == 200


async def test_time_is_bounded_and_others_are_not_held_up(monkeypatch):
    free = threading.Event()

    def slow(request, context):
        free.wait(20)
        return Verdict()

    monkeypatch.setitem(PATHS, "/slow", Path("/slow", "slow", PATHS["/pods/validate"].rt, ("CREATE",), slow))
    async with serving(["/slow", "/jobs/validate"], longest=0.05) as post:
        try:
            large = asyncio.create_task(post("/slow", review({"text": "x" * server.AT_ONCE})))
            before = time.monotonic()
            status, _ = await post("/jobs/validate", review(job(minAvailable=1)))
            assert status == 200
            assert time.monotonic() - before < 10
            status, text = await large
            assert status == 504
            assert "no response within" in text
        finally:
            free.set()


async def test_a_failing_rule_is_an_internal_error(monkeypatch):
    def broken(request, context):
        raise ZeroDivisionError

    monkeypatch.setitem(PATHS, "/broken", Path("/broken", "broken", PATHS["/pods/validate"].rt, ("CREATE",), broken))
    async with serving(["/broken"]) as post:
        assert (await post("/broken", review({})))[0] == 500


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(value, path=()):
    """Every place inside a value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


FULL = job(
    minAvailable=1,
    policies=[{"event": "PodFailed", "action": "RestartJob"}],
    plugins={"mpi": ["--master=t"]},
    volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
    networkTopology={"mode": "hard", "highestTierAllowed": 1},
)
SPECIMENS = {
    "jobs": FULL,
    "queues": {
        "metadata": {"name": "q", "annotations": {names.HIERARCHY: "a/b", names.HIERARCHY_WEIGHTS: "1/2"}},
        "spec": {"parent": "default", "guarantee": {"resource": {"cpu": "1"}}, "deserved": {"cpu": "2"}},
    },
    "podgroups": {"metadata": {"name": "g"}, "spec": {"queue": "default", "subGroupPolicy": [{"name": "s"}]}},
    "pods": {
        "metadata": {"name": "p", "annotations": {"volcano.sh/jdb-min-available": "1"}},
        "spec": {"schedulerName": "volcano", "tolerations": [{"key": "a"}]},
    },
    "reservations": {
        "metadata": {"name": "class"},
        "spec": {
            "startTime": "2099-01-01T00:00:00Z",
            "duration": "1h",
            "nodes": ["n1"],
            "nodeSelector": {"matchLabels": {"rack": "a"}},
            "nodeCount": 1,
            "resources": {"cpu": "4"},
            "owners": [{"queue": "q", "labelSelector": {"matchLabels": {"a": "b"}}}],
        },
    },
    "hypernodes": {
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n"}}}]},
    },
    "cronjobs": {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "timeZone": "UTC"}},
    "commands": {
        "metadata": {"name": "c", "annotations": {names.QUEUE_ACCESS_CHECKED: "CloseQueue q"}},
        "action": "CloseQueue",
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q"},
        "spec": {},
    },
    "jobflows": {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}]}},
}
GROUPS = AdmissionContext(queues=AROUND.queues, resource_groups=[{"resourceGroup": "r", "tolerations": [{"key": "b"}]}])


@settings(max_examples=600)
@given(st.data())
def test_any_value_in_any_place_gets_an_answer(data):
    path = PATHS[data.draw(st.sampled_from(sorted(PATHS)))]
    operation = data.draw(st.sampled_from(path.operations))
    valid = review(SPECIMENS[path.rt.plural], operation, oldObject=SPECIMENS[path.rt.plural])
    where = data.draw(st.sampled_from(list(places(valid))))
    made = json.loads(answer(path, json.dumps(changed(valid, where, data.draw(VALUES))).encode(), GROUPS))
    assert made["kind"] == "AdmissionReview"
    assert isinstance(made["response"]["allowed"], bool)
    assert made["response"]["allowed"] or made["response"]["status"]["message"]


@given(st.sampled_from(sorted(PATHS)), st.integers(1, 400))
def test_truncated_reviews_get_an_answer(name, lost):
    body = json.dumps(review(SPECIMENS[PATHS[name].rt.plural])).encode()[:-lost]
    assert not json.loads(answer(PATHS[name], body, AROUND))["response"]["allowed"]


@pytest.mark.parametrize("name", sorted(PATHS))
def test_deep_nesting_gets_an_answer(name):
    deep: object = 1
    for _ in range(900):
        deep = {"x": deep}
    specimen = SPECIMENS[PATHS[name].rt.plural]
    body = json.dumps(review(specimen | {"spec": specimen["spec"] | {"tasks": [{"template": deep}]}})).encode()
    assert json.loads(answer(PATHS[name], body, GROUPS))["kind"] == "AdmissionReview"


def applied(value, operations):
    """A plain reading of RFC 6902, for what we write."""
    result = json.loads(json.dumps(value))
    for operation in operations:
        *way, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
        place = result
        for part in way:
            place = place[part]
        if operation["op"] == "remove":
            del place[last]
        else:
            assert (last in place) == (operation["op"] == "replace")
            place[last] = operation["value"]
    return result


OBJECTS = st.dictionaries(st.text("ab/~", max_size=3), VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_leads_from_one_object_to_the_other(before, after):
    made = applied(before, json_patch(before, after))
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert not list(json_patch(after, after))
