"""Bodies that are too much, too deep or no text, ids that lead elsewhere, webhooks that hang: rejected cheaply."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
from yarl import URL

from tests import waiting
from tests.sandbox.clients import APPLY, JSON_PATCH, MERGE, STRATEGIC, Http
from volcano_py.sandbox.cluster import Sandbox

CORE = "/api/v1/namespaces/default"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OPEN_KIND = {
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
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""A kind that takes anything."""
PATCHES = (MERGE, STRATEGIC, APPLY, JSON_PATCH)


def nested(depth: int, where: str) -> bytes:
    """A config map with something deep in a place of it."""
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"},"%s":%s}' % (where.encode(), deep)


SLOW_DEPTHS = [pytest.param(depth, marks=pytest.mark.slow) for depth in (300, 600, 990)]


@pytest.mark.parametrize("depth", [200, 1100, 10_000, *SLOW_DEPTHS])
async def test_deep_json_is_rejected_or_dropped(api: Http, depth: int) -> None:
    await api.ok("POST", CORE + "/configmaps", {"metadata": {"name": "p"}})
    for where in ("unknown", "data"):
        body = nested(depth, where)
        asked = [
            await api.call(
                "POST", CORE + "/configmaps?dryRun=All&fieldValidation=Strict", body.replace(b'"p"', b'"q"')
            ),
            await api.call("PUT", CORE + "/configmaps/p?dryRun=All", body),
            await api.call("DELETE", CORE + "/configmaps/p?dryRun=All", body),
        ]
        for kind in PATCHES:
            asked.append(await api.call("PATCH", CORE + "/configmaps/p?dryRun=All&fieldManager=m", body, kind))
        for status, answer in asked:
            assert status < 500 and isinstance(answer, dict), (depth, where, status, answer)
            assert status >= 400 or where == "unknown", (depth, where, answer)


@pytest.mark.parametrize("depth", [180, 240, 10_000])
async def test_deep_custom_resources_are_kept_whole_or_rejected(api: Http, depth: int) -> None:
    await api.ok("POST", CRDS, OPEN_KIND)
    path = "/apis/e.com/v1/namespaces/default/ps"
    await api.until(path, lambda answer: answer.get("kind") == "PList")
    deep: Any = []
    for _ in range(depth - 1):
        deep = [deep]
    text = "[" * depth + "]" * depth
    body = f'{{"apiVersion": "e.com/v1", "kind": "P", "metadata": {{"name": "p"}}, "spec": {text}}}'
    status, answer = await api.call("POST", path, body)
    assert status == (201 if depth < 200 else 400), (depth, status, answer)
    status, answer = await api.call("PATCH", path + "/p", f'{{"other": {text}}}', MERGE)
    assert status == (200 if depth < 200 else 400), (depth, status, answer)
    if depth < 200:
        assert (await api.ok("GET", path + "/p"))["other"] == deep
    await api.ok("GET", path)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml", *PATCHES])
async def test_ten_mebibytes_are_too_many(api: Http, kind: str) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"},"data":{"a":"%s"}}' % (b"x" * 10 * 2**20)
    if kind in PATCHES:
        status, answer = await api.call("PATCH", CORE + "/configmaps/p?fieldManager=m", body, kind)
    else:
        status, answer = await api.call("POST", CORE + "/configmaps", body, kind)
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert (await api.ok("GET", CORE + "/configmaps"))["items"] == []


async def test_a_small_body_that_unpacks_to_much_is_rejected(api: Http) -> None:
    packed = gzip.compress(b'{"data":"' + b" " * 50 * 2**20)
    sent = {"Content-Encoding": "gzip"}
    status, answer = await api.call("POST", CORE + "/configmaps", packed, **sent)
    assert (status, answer["kind"]) == (413, "Status")


async def test_yaml_that_multiplies_is_rejected(api: Http) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    body = "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: p}", *lines])
    for method, path, kind in (
        ("POST", "/configmaps", "application/yaml"),
        ("PATCH", "/configmaps/p?fieldManager=m", APPLY),
    ):
        async with waiting.limit("the body has not been rejected"):
            status, answer = await api.call(method, CORE + path, body, kind)
        assert status == 400 and answer["kind"] == "Status", (status, str(answer)[:300])


async def test_patches_cannot_multiply_an_object(api: Http) -> None:
    await api.ok("POST", CORE + "/configmaps", {"metadata": {"name": "p"}, "data": {"a": "x" * 1000}})
    double = [{"op": "copy", "from": "/data", "path": f"/data/{n}"} for n in range(60)]
    async with waiting.limit("the body has not been rejected"):
        status, answer = await api.call("PATCH", CORE + "/configmaps/p", double, JSON_PATCH)
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
    deeper = [{"op": "copy", "from": "/metadata/labels", "path": "/metadata/labels/a"}] * 5000
    await api.ok("PATCH", CORE + "/configmaps/p", {"metadata": {"labels": {"b": "c"}}}, MERGE)
    status, answer = await api.call("PATCH", CORE + "/configmaps/p", deeper, JSON_PATCH)
    assert status in (400, 413, 422), answer


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80\x80\x80", b"\x00"])
async def test_a_body_that_is_not_utf8_is_rejected(api: Http, raw: bytes) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"},"data":{"a":"%s"}}' % raw
    for kind in ("application/json", "application/yaml"):
        status, answer = await api.call("POST", CORE + "/configmaps", body, kind)
        assert status == 400 and answer["kind"] == "Status", (kind, status, answer)
    for kind in PATCHES:
        status, answer = await api.call("PATCH", CORE + "/configmaps/p?fieldManager=m", body, kind)
        assert status in (400, 404) and answer["kind"] == "Status", (kind, status, answer)


@pytest.mark.parametrize(
    "name", ["..", ".", "%2e%2e", "..%2f..%2fsecrets", "a%2fb", "a%00b", "%ff", "a%0d%0aX-A:b", "x" * 5000, "a b", "é"]
)
async def test_ids_lead_nowhere_else(sandbox: Sandbox, api: Http, name: str) -> None:
    quoted = name.replace(" ", "%20").replace("é", "%C3%A9")
    for path in (
        f"{CORE}/configmaps/{quoted}",
        f"/api/v1/namespaces/{quoted}/configmaps/x",
        f"{CORE}/pods/{quoted}/log",
    ):
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            url = URL(sandbox.url + path, encoded=True)
            sent = {
                "Authorization": f"Bearer {sandbox.token}",
                "Content-Type": MERGE if method == "PATCH" else "application/json",
            }
            async with api.session.request(
                method, url, headers=sent, data=b"{}" if method != "GET" else None
            ) as answer:
                text = await answer.text()
            assert answer.status in (400, 404, 405, 422), (method, path, answer.status, text)
            assert "Traceback" not in text and "X-A" not in answer.headers


def hook(port: int, resource: str) -> dict[str, Any]:
    return {
        "name": f"{resource}.e.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}],
        "timeoutSeconds": 5,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }


async def test_a_webhook_that_hangs_delays_only_its_requests(api: Http) -> None:
    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
    refusing = await asyncio.start_server(refuse, "127.0.0.1", 0)
    hooks = [
        hook(hanging.sockets[0].getsockname()[1], "configmaps"),
        hook(refusing.sockets[0].getsockname()[1], "secrets"),
    ]
    group = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    await api.ok("POST", group, {"metadata": {"name": "h"}, "webhooks": hooks})
    bodies = [{"metadata": {"name": f"c{n}"}} for n in range(150)]
    asked = [asyncio.create_task(api.call("POST", CORE + "/configmaps", body)) for body in bodies]
    await asyncio.sleep(0.3)
    status, answer = await api.call("POST", CORE + "/secrets", {"metadata": {"name": "s"}})
    assert status == 500 and "deadline" not in answer["message"], "the other webhook was asked at once"
    await api.ok("POST", CORE + "/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    await api.ok("GET", CORE + "/configmaps")
    assert not any(task.done() for task in asked), "they waited for the webhook that hangs"
    for status, answer in await asyncio.gather(*asked):
        assert status == 500 and "context deadline exceeded" in answer["message"], answer
    hanging.close()
    refusing.close()
