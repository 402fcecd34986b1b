"""Objects that cannot be decoded and answers that are none: the informer reports them and goes on."""

import asyncio
import json

import pytest
from aiohttp import web
from fake_api import PODS, pod
from test_client import Pod
from test_informer import Watched

from tests.faults.poison import DEPTHS, deep
from volcano_py.kube import Client, KubeError
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import InvalidResponse
from volcano_py.kube.informer import Informer

META = {"namespace": "default", "name": "poison", "uid": "u-1", "resourceVersion": "103"}
MANIFEST = {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": {"nodeName": "n"}}
FAR = DEPTHS[1:]

ANSWERS = {
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "empty": b"",
    "a list": b"[]",
    "a text": b'"ok"',
    "another object": b"{}",
    "cut": b'{"kind": "PodList", "items": [{"metadata": {"na',
    "no UTF-8": b'{"metadata": {"name": "\xff", "resourceVersion": "\xff"}}',
    "deep": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
}


def listing(*objects, version="105"):
    items = b",".join(objects)
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%s"},"items":[' % version.encode()
    return web.Response(body=head + items + b"]}", content_type="application/json")


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_deep_object_in_a_list_is_set_aside(api, client, depth):
    good = json.dumps(pod("good") | {"metadata": {**pod("good")["metadata"], "resourceVersion": "101"}}).encode()
    api.fault("GET pods", lambda r: listing(good, deep(MANIFEST, depth), good.replace(b"good", b"also")))
    async with Watched(client) as w:
        assert {"default/good", "default/also"} <= set(w.informer.store)
        if depth in FAR:
            (rejected,) = w.rejected
            assert (rejected.namespace, rejected.name, rejected.uid) == ("default", "poison", "u-1")
            assert rejected.resource_version == "103" and "deep" in rejected.error
        else:
            assert "default/poison" in w.informer.store and not w.rejected


@pytest.mark.parametrize("depth", FAR)
async def test_a_deep_object_on_a_watch_is_reported_and_so_is_its_deletion(api, client, depth):
    api.put("pods", pod("poison"))

    async def events(request):
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for kind in ("MODIFIED", "MODIFIED", "DELETED"):
            await response.write(b'{"type":"%s","object":%s}\n' % (kind.encode(), deep(MANIFEST, depth)))
        await response.write(json.dumps({"type": "ADDED", "object": api.put("pods", pod("next"))}).encode() + b"\n")
        await asyncio.sleep(3600)
        return response

    api.fault("GET watch=true", events)
    async with Watched(client) as w:
        await w.until(lambda: "default/next" in w.informer.store)
        assert [one.name for one in w.rejected] == ["poison", "poison"]
        assert "default/poison" not in w.informer.store


async def test_an_undecodable_object_is_logged_once(api, client, caplog):
    def poisoned(request):
        return listing(deep(MANIFEST, 5_000))

    api.fault("GET pods", poisoned, times=100)
    informer = Informer(client, PODS, Pod)
    for _ in range(3):
        await informer._list()
    assert caplog.text.count("default/poison cannot be used") == 1


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("match", ["GET limit", "GET watch=true"])
async def test_an_answer_that_is_none_is_retried(api, client, answer, match):
    api.put("pods", pod("a"))
    api.fault(match, lambda r: web.Response(body=answer, content_type="application/json"), times=3)
    async with Watched(client) as w:
        api.put("pods", pod("b"))
        await w.until(lambda: set(w.informer.store) == {"default/a", "default/b"})
        assert not any(what == "delete" for what, _ in w.events)


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("answer", [ANSWERS[k] for k in ANSWERS if k != "another object"])
async def test_every_request_names_an_invalid_response(api, client, answer):
    calls = {
        "get": lambda: client.get(PODS, "a", "default"),
        "list": lambda: client.list(PODS, "default"),
        "create": lambda: client.create(PODS, pod("a")),
        "update": lambda: client.update(PODS, pod("a")),
        "patch": lambda: client.patch(PODS, "a", {}, "default"),
        "delete": lambda: client.delete(PODS, "a", "default"),
        "bind": lambda: client.create_subresource(PODS, "a", "binding", {}, "default"),
    }
    for name, call in calls.items():
        api.fault(lambda r: True, lambda r: web.Response(body=answer, content_type="application/json"))
        with pytest.raises(InvalidResponse):
            await call()
            raise AssertionError(f"{name} accepted {answer[:20]!r}")


async def test_an_error_body_that_is_nested_too_deep_is_still_an_api_error(api, client):
    body = b'{"kind":"Status","details":' + ANSWERS["deep"] + b"}"
    api.fault(lambda r: True, lambda r: web.Response(body=body, status=403, content_type="application/json"))
    with pytest.raises(KubeError) as caught:
        await client.get(PODS, "a", "default")
    assert caught.value.status == 403


async def test_an_unexpected_error_does_not_end_the_informer(api, client, caplog):
    api.put("pods", pod("a"))

    def prepare(obj):
        if not prepare.failed:
            prepare.failed = True
            raise ZeroDivisionError
        return obj

    prepare.failed = False
    async with Watched(client, prepare=prepare) as w:
        assert set(w.informer.store) == {"default/a"}
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("lean", [False, True])
async def test_the_gate_is_called_again_when_there_is_a_connection(api, lean):
    class Closed(Exception):
        pass

    requests = []

    def gate():
        requests.append(1)
        if len(requests) == 2:
            raise Closed

    async with Client(Credentials(server=api.url), lean=lean, gate=gate) as client:
        with pytest.raises(Closed):
            await client.create(PODS, pod("a"))
        assert not api.objects and len(requests) == 2
        await client.create(PODS, pod("a"))
        assert len(api.objects) == 1
