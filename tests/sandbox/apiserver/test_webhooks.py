"""Admission webhooks that are configured as objects."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.sandbox.clients import CONFIGMAPS, Http
from volcano_py.kube import certificates

HOOKS = "/apis/admissionregistration.k8s.io/v1"


class Hook:
    """A webhook server that answers as its `answer` says."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.response: dict[str, Any] = {"allowed": True}
        self.delay = 0.0
        self.url = self.bundle = ""

    async def serve(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.seen.append(review["request"])
        await asyncio.sleep(self.delay)
        response = {"uid": review["request"]["uid"], **self.response}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})

    def mutate(self, *operations: dict[str, Any]) -> None:
        text = base64.b64encode(json.dumps(operations).encode()).decode()
        self.response = {"allowed": True, "patchType": "JSONPatch", "patch": text}


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    made = Hook()
    authority = certificates.make(("127.0.0.1",))
    app = web.Application()
    app.router.add_post("/", made.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.context())
    await site.start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    made.bundle = base64.b64encode(authority.authority).decode()
    yield made
    await runner.cleanup()


async def configure(api: Http, hook: Hook, kind: str, **more: Any) -> None:
    row = {
        "name": "hook.test.example.com",
        "clientConfig": {"url": hook.url, "caBundle": hook.bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **more,
    }
    await api.ok("POST", f"{HOOKS}/{kind}webhookconfigurations", {"metadata": {"name": "test"}, "webhooks": [row]})


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"a": "1"}}


async def test_a_webhook_changes_what_is_stored(api: Http, hook: Hook) -> None:
    await configure(api, hook, "mutating")
    hook.mutate({"op": "add", "path": "/data/b", "value": "2"})
    made = await api.ok("POST", CONFIGMAPS, config_map("x"))
    assert made["data"] == {"a": "1", "b": "2"}
    asked = hook.seen[0]
    assert asked["operation"] == "CREATE" and asked["resource"]["resource"] == "configmaps"
    assert asked["object"]["data"] == {"a": "1"} and asked["userInfo"]["groups"]


async def test_a_webhook_denies(api: Http, hook: Hook) -> None:
    await configure(api, hook, "validating")
    hook.response = {"allowed": False, "status": {"message": "not on Mondays", "code": 403}}
    status, answer = await api.call("POST", CONFIGMAPS, config_map("x"))
    assert status == 403
    assert answer["message"] == 'admission webhook "hook.test.example.com" denied the request: not on Mondays'
    assert (await api.call("GET", f"{CONFIGMAPS}/x"))[0] == 404


async def test_only_matching_requests_reach_the_webhook(api: Http, hook: Hook) -> None:
    await configure(api, hook, "validating", objectSelector={"matchLabels": {"asked": "yes"}})
    await api.ok("POST", CONFIGMAPS, config_map("x"))
    await api.ok("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    assert hook.seen == []


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_without_an_answer_fails_by_its_policy(api: Http, hook: Hook, policy: str, status: int) -> None:
    await configure(api, hook, "validating", failurePolicy=policy, timeoutSeconds=1)
    hook.delay = 3
    got, answer = await api.call("POST", CONFIGMAPS, config_map("x"))
    assert got == status, answer
    if policy == "Fail":
        assert 'failed calling webhook "hook.test.example.com"' in answer["message"]


async def test_a_webhook_with_an_untrusted_certificate_fails(api: Http, hook: Hook) -> None:
    hook.bundle = base64.b64encode(certificates.make(("127.0.0.1",)).authority).decode()
    await configure(api, hook, "validating")
    status, answer = await api.call("POST", CONFIGMAPS, config_map("x"))
    assert status == 500 and "failed to verify certificate" in answer["message"]
