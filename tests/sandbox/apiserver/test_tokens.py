"""Tokens of service accounts: audiences, bound objects and reviews."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.sandbox.clients import PODS, Http, http, pod
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.manager import Options

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
API_SERVER = "https://kubernetes.default.svc"


@pytest.fixture
async def api() -> AsyncIterator[Http]:
    async with Sandbox(nodes=1, controllers=Options(service_accounts=True)) as sandbox, http(sandbox) as client:
        await client.ok("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
        yield client


async def request_token(api: Http, **spec: Any) -> tuple[int, Any]:
    return await api.call("POST", f"{ACCOUNTS}/robot/token", {"spec": spec})


async def token(api: Http, **spec: Any) -> str:
    status, answer = await request_token(api, **spec)
    assert status == 201, answer
    return str(answer["status"]["token"])


def claims(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def review(api: Http, token: str, *audiences: str) -> Any:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return (await api.ok("POST", REVIEWS, {"spec": spec}))["status"]


async def works(api: Http, token: str) -> bool:
    status, _ = await api.call("POST", WHOAMI, {}, token=token)
    assert status in (201, 401)
    return status == 201


async def bound(api: Http, kind: str, name: str, uid: str = "") -> str:
    return await token(api, boundObjectRef={"apiVersion": "v1", "kind": kind, "name": name, "uid": uid})


async def test_a_token_is_valid_for_its_audiences_only(api: Http) -> None:
    vault = await token(api, audiences=["vault", "sts"])
    assert claims(vault)["aud"] == ["vault", "sts"]
    assert not await works(api, vault)
    assert await works(api, await token(api, audiences=["vault", API_SERVER]))
    assert claims(await token(api))["aud"] == [API_SERVER]


async def test_reviews_name_the_audiences_of_both_sides(api: Http) -> None:
    vault = await token(api, audiences=["vault", "sts"])
    found = await review(api, vault, "sts", "other")
    assert (found["authenticated"], found["audiences"]) == (True, ["sts"])
    assert found["user"]["username"] == "system:serviceaccount:default:robot"
    rejected = await review(api, vault)
    text = f'token audiences ["vault" "sts"] is invalid for the target audiences ["{API_SERVER}"]'
    assert rejected == {"user": {}, "error": f"[invalid bearer token, {text}]"}
    assert (await review(api, await token(api)))["audiences"] == [API_SERVER]
    # a token from the kubeconfig has no audiences: it is for the API server
    assert (await review(api, api.sandbox.token))["audiences"] == [API_SERVER]
    assert (await review(api, api.sandbox.token, "vault"))["error"] == "invalid bearer token"
    status, answer = await api.call("POST", REVIEWS, {"spec": {}})
    assert status == 400 and answer["message"] == "token is required for TokenReview in authentication"


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
async def test_a_bound_token_ends_with_its_object(api: Http, kind: str) -> None:
    where, body = {
        "Pod": (PODS, pod("it", serviceAccountName="robot", nodeName="node-0")),
        "Secret": (SECRETS, {"metadata": {"name": "it"}}),
        "Node": ("/api/v1/nodes", {"metadata": {"name": "it"}}),
    }[kind]
    uid = (await api.ok("POST", where, body))["metadata"]["uid"]
    made = await bound(api, kind, "it", uid)
    assert claims(made)["kubernetes.io"][kind.lower()] == {"name": "it", "uid": uid}
    assert await works(api, made)
    await api.call("DELETE", f"{where}/it?gracePeriodSeconds=0")
    assert not await works(api, made)
    assert (await review(api, made))["error"] == "[invalid bearer token, service account token has been invalidated]"
    again = (await api.ok("POST", where, body))["metadata"]["uid"]
    assert again != uid and not await works(api, made)  # another object of that name is another object
    assert f"UID ({again}) does not match" in (await review(api, made))["error"]


async def test_a_pods_token_names_pod_and_node(api: Http) -> None:
    made = await api.ok("POST", PODS, pod("it", serviceAccountName="robot", nodeName="node-0"))
    node = await api.ok("GET", "/api/v1/nodes/node-0")
    _, answer = await api.call("POST", WHOAMI, {}, token=await bound(api, "Pod", "it"))
    extra = answer["status"]["userInfo"]["extra"]
    assert extra.pop("authentication.kubernetes.io/credential-id")[0].startswith("JTI=")
    assert extra == {
        "authentication.kubernetes.io/pod-name": ["it"],
        "authentication.kubernetes.io/pod-uid": [made["metadata"]["uid"]],
        "authentication.kubernetes.io/node-name": ["node-0"],
        "authentication.kubernetes.io/node-uid": [node["metadata"]["uid"]],
    }


@pytest.mark.parametrize(
    ("reference", "status", "text"),
    [
        ({"kind": "Pod", "apiVersion": "v1", "name": "gone"}, 404, 'pods "gone" not found'),
        ({"kind": "Node", "apiVersion": "v1", "name": "gone"}, 404, 'nodes "gone" not found'),
        (
            {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            {"kind": "Pod", "apiVersion": "apps/v1", "name": "x"},
            400,
            "cannot bind token to object of type apps/v1, Kind=Pod",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "name": "other"},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
        (
            {"kind": "Secret", "apiVersion": "v1", "name": "it", "uid": "0"},
            409,
            'Operation cannot be fulfilled on Secret "it": the UID in the bound object reference (0) does not match '
            "the UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
async def test_references_that_cannot_be_bound(api: Http, reference: dict[str, str], status: int, text: str) -> None:
    await api.ok("POST", PODS, pod("other"))
    await api.ok("POST", SECRETS, {"metadata": {"name": "it"}})
    found, answer = await request_token(api, boundObjectRef=reference)
    assert (found, answer["message"]) == (status, text)


async def test_a_lasting_token_ends_with_its_secret(api: Http) -> None:
    annotations = {"kubernetes.io/service-account.name": "robot"}
    secret = {"metadata": {"name": "key", "annotations": annotations}, "type": "kubernetes.io/service-account-token"}
    await api.ok("POST", SECRETS, secret)
    filled = await api.until(f"{SECRETS}/key", lambda found: found.get("data", {}).get("token"))
    made = base64.b64decode(filled["data"]["token"]).decode()
    assert await works(api, made)
    # what another client put there is replaced
    patch = {"data": {"token": base64.b64encode(b"forged").decode()}}
    await api.ok("PATCH", f"{SECRETS}/key", patch, "application/merge-patch+json")
    forged = patch["data"]["token"]
    filled = await api.until(f"{SECRETS}/key", lambda found: found["data"].get("token") != forged)
    made = base64.b64decode(filled["data"]["token"]).decode()
    assert await works(api, made)
    await api.ok("DELETE", f"{SECRETS}/key")
    assert not await works(api, made)


async def test_a_request_for_another_account_of_that_name_is_a_conflict(api: Http) -> None:
    body = {"metadata": {"uid": "0"}, "spec": {}}
    status, answer = await api.call("POST", f"{ACCOUNTS}/robot/token", body)
    assert status == 409 and "the UID in the token request (0) does not match" in answer["message"]
