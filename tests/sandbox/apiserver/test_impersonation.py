"""Impersonation: every part of the identity is authorized on its own, for resources and for paths."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from tests.sandbox.clients import PODS, Http, http
from volcano_py.sandbox.apiserver.auth.authorization import Access
from volcano_py.sandbox.apiserver.auth.impersonation import impersonate
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JANE = "jane-token"
LEGACY, AUTHENTICATION = "", "authentication.k8s.io"
SCOPES = "Impersonate-Extra-Acme.io%2Fscopes"
Rule = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Http]:
    users = {JANE: User("jane", ("developers", "system:authenticated"))}
    async with Sandbox(nodes=0, users=users) as sandbox, http(sandbox) as client:
        yield client


def rule(resource: str, *names: str, group: str = LEGACY, verb: str = "impersonate") -> Rule:
    """A rule that gives a verb on the named objects of a resource, or on all."""
    more = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb], **more}


async def grant(api: Http, *rules: Rule, subject: str = "jane") -> None:
    """Give a user the rules in the whole cluster, beside the right to be access who they are."""
    await api.call("DELETE", f"{RBAC}/clusterrolebindings/taker")
    await api.call("DELETE", f"{RBAC}/clusterroles/taker")
    await api.ok("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "taker"}, "rules": list(rules)})
    subjects = [{"kind": "User", "name": subject, "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "ClusterRole", "name": "taker", "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": "taker"}, "subjects": subjects, "roleRef": role}
    await api.ok("POST", f"{RBAC}/clusterrolebindings", body)


async def identity(api: Http, token: str | None = JANE, **headers: str | list[str]) -> tuple[int, Any]:
    """The identity that the server sees: (status, user info or Status)."""
    status, answer = await api.call("POST", WHOAMI, {}, token=token, **headers)
    return status, answer["status"]["userInfo"] if status == 201 else answer


async def test_the_right_to_one_user_gives_no_group(api: Http) -> None:
    """The escalation: who may take one user sent a group header and was an administrator."""
    await grant(api, rule("users", "carol"))
    assert (await identity(api, **{"Impersonate-User": "carol"}))[1]["username"] == "carol"
    headers: dict[str, str | list[str]] = {"Impersonate-User": "carol", "Impersonate-Group": "system:masters"}
    status, answer = await api.call("GET", "/api/v1/secrets", token=JANE, **headers)
    assert status == 403 and "items" not in answer
    assert answer["message"] == (
        'secrets is forbidden: User "jane" cannot impersonate-on:user-info:list resource "secrets" in API group "" '
        "at the cluster scope"
    )
    status, answer = await api.call("GET", "/metrics", token=JANE, **headers)
    assert status == 403
    assert answer["message"] == 'forbidden: User "jane" cannot impersonate-on:user-info:get path "/metrics"'


async def test_a_service_account_does_not_become_an_administrator(api: Http) -> None:
    await api.ok("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    made = await api.ok("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
    await grant(api, rule("users", "carol"), subject="system:serviceaccount:default:robot")
    headers: dict[str, str | list[str]] = {"Impersonate-User": "carol", "Impersonate-Group": "system:masters"}
    status, _ = await api.call("GET", "/api/v1/secrets", token=made["status"]["token"], **headers)
    assert status == 403


@pytest.mark.parametrize(
    ("more", "headers", "field", "value"),
    [
        (rule("groups", "dev"), {"Impersonate-Group": "dev"}, "groups", ["dev", "system:authenticated"]),
        (rule("uids", "7", group=AUTHENTICATION), {"Impersonate-Uid": "7"}, "uid", "7"),
        (
            rule("userextras/acme.io/scopes", "view", group=AUTHENTICATION),
            {SCOPES: "view"},
            "extra",
            {"acme.io/scopes": ["view"]},
        ),
    ],
    ids=["groups", "uids", "userextras"],
)
async def test_each_part_needs_a_right_of_its_own(
    api: Http, more: Rule, headers: dict[str, str | list[str]], field: str, value: Any
) -> None:
    wanted = {"Impersonate-User": "carol", **headers}
    await grant(api, rule("users", "carol"))
    assert (await identity(api, **wanted))[0] == 403
    await grant(api, more)
    assert (await identity(api, **wanted))[0] == 403
    await grant(api, rule("users", "carol"), more)
    status, found = await identity(api, **wanted)
    assert (status, found["username"], found[field]) == (201, "carol", value)
    others = dict.fromkeys(headers, "other")
    assert (await identity(api, **{"Impersonate-User": "carol", **others}))[0] == 403


async def test_one_forbidden_group_of_several_is_enough_to_deny(api: Http) -> None:
    await grant(api, rule("users", "carol"), rule("groups", "dev"))
    wanted = ["dev", "system:masters"]
    assert (await identity(api, **{"Impersonate-User": "carol", "Impersonate-Group": wanted}))[0] == 403
    await grant(api, rule("users", "carol"), rule("groups", "dev", "ops"))
    _, found = await identity(api, **{"Impersonate-User": "carol", "Impersonate-Group": ["dev", "ops"]})
    assert found["groups"] == ["dev", "ops", "system:authenticated"]


async def test_service_accounts_are_named_by_namespace(api: Http) -> None:
    robot = {"Impersonate-User": "system:serviceaccount:default:robot"}
    await grant(api, rule("users"))
    assert (await identity(api, **robot))[0] == 403
    body = {"metadata": {"name": "taker"}, "rules": [rule("serviceaccounts", "robot")]}
    await api.ok("POST", f"{RBAC}/namespaces/default/roles", body)
    subjects = [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "Role", "name": "taker", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"metadata": {"name": "taker"}, "subjects": subjects, "roleRef": role}
    await api.ok("POST", f"{RBAC}/namespaces/default/rolebindings", bound)
    status, found = await identity(api, **robot)
    assert status == 201
    assert found["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert (await identity(api, **{"Impersonate-User": "system:serviceaccount:kube-system:robot"}))[0] == 403
    assert (await identity(api, **{"Impersonate-User": "system:serviceaccount:default:other"}))[0] == 403


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"Impersonate-Group": ["a", "b"]}, 'UID:"", Groups:[]string{"a", "b"}, Extra:map[string][]string(nil)'),
        ({"Impersonate-Uid": "7"}, 'UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            {"Impersonate-Extra-X": ["1", "2"]},
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"1", "2"}}',
        ),
    ],
)
@pytest.mark.parametrize("path", [PODS, "/version", "/apis", "/openapi/v2", "/no/such/path"])
async def test_headers_without_a_user_are_400_even_for_an_administrator(
    api: Http, headers: dict[str, str | list[str]], shown: str, path: str
) -> None:
    status, answer = await api.call("GET", path, **headers)
    assert status == 400
    text = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    assert (answer["reason"], answer["message"]) == ("BadRequest", text)


async def test_paths_are_authorized_for_the_impersonated_identity(api: Http) -> None:
    await grant(api, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, subject="carol")
    assert (await api.call("GET", "/metrics", token=JANE, **{"Impersonate-User": "carol"}))[0] == 403
    assert (await api.call("GET", "/metrics", **{"Impersonate-User": "carol"}))[0] == 404  # allowed, and not served
    status, answer = await api.call("GET", "/metrics", **{"Impersonate-User": "dave"})
    assert status == 403 and answer["message"] == 'forbidden: User "dave" cannot get path "/metrics"'
    status, answer = await api.call("GET", "/apis", **{"Impersonate-User": "system:anonymous"})
    assert status == 403 and 'User "system:anonymous" cannot get path "/apis"' in answer["message"]


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ({"Impersonate-User": "carol"}, ["system:authenticated"]),
        ({"Impersonate-User": "system:anonymous"}, ["system:unauthenticated"]),
        (
            {"Impersonate-User": "carol", "Impersonate-Group": ["system:authenticated", "dev"]},
            ["system:authenticated", "dev"],
        ),
    ],
)
async def test_the_system_group_is_added_once(
    api: Http, headers: dict[str, str | list[str]], groups: list[str]
) -> None:
    sent: CIMultiDict[str] = CIMultiDict()
    for key, values in headers.items():
        for value in [values] if isinstance(values, str) else values:
            sent.add(key, value)
    access = Access(User("root", ("system:masters",)), "get", path="/")
    assert list(impersonate(api.sandbox.api, access, sent).groups) == groups


async def test_unauthenticated_is_not_authenticated(api: Http) -> None:
    headers: dict[str, str | list[str]] = {"Impersonate-User": "carol", "Impersonate-Group": "system:unauthenticated"}
    status, answer = await api.call("POST", WHOAMI, {}, **headers)
    assert status == 403 and 'User "carol" cannot create resource "selfsubjectreviews"' in answer["message"]


async def test_a_constrained_right_holds_for_one_verb_and_never_for_masters(api: Http) -> None:
    mode = "impersonate:user-info"
    create = "impersonate-on:user-info:create"
    rules = [
        rule("users", "carol", group=AUTHENTICATION, verb=mode),
        rule("groups", group=AUTHENTICATION, verb=mode),
        rule("selfsubjectreviews", group=AUTHENTICATION, verb=create),
    ]
    await grant(api, *rules)
    status, found = await identity(api, **{"Impersonate-User": "carol", "Impersonate-Group": "dev"})
    assert status == 201 and found["groups"] == ["dev", "system:authenticated"]
    assert (await api.call("GET", PODS, token=JANE, **{"Impersonate-User": "carol"}))[0] == 403
    status, answer = await identity(api, **{"Impersonate-User": "carol", "Impersonate-Group": "system:masters"})
    assert status == 403 and "impersonating the system:masters group is not allowed" in answer["message"]
    status, answer = await identity(api, **{"Impersonate-User": "system:node:n-0"})
    assert status == 403 and "impersonate-on:arbitrary-node:create" in answer["message"]


async def test_the_audit_log_names_both_for_resources_and_paths(tmp_path: Path) -> None:
    async with Sandbox(nodes=0, audit=tmp_path / "audit") as sandbox, http(sandbox) as api:
        await api.call("GET", PODS, **{"Impersonate-User": "carol"})
        await api.call("GET", "/metrics", **{"Impersonate-User": "carol"})
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    found = {line["requestURI"]: line.get("impersonatedUser", {}).get("username") for line in lines}
    assert found[PODS] == "carol" and found["/metrics"] == "carol"
