"""No user grants more than they hold: roles need `escalate`, bindings need `bind`, or the rules themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, Http, http
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
JANE = "jane-token"
Rule = dict[str, Any]
WRITER: Rule = {
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    "verbs": ["create", "get", "update", "patch"],
}


@pytest.fixture
async def api() -> AsyncIterator[Http]:
    users = {JANE: User("jane", ("developers", "system:authenticated"))}
    async with Sandbox(nodes=0, users=users) as sandbox, http(sandbox) as client:
        await hold(client)
        yield client


def rule(resource: str, *verbs: str, group: str = "", names: tuple[str, ...] = ()) -> Rule:
    made: Rule = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**made, "resourceNames": list(names)} if names else made


def role(name: str, *rules: Rule) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, to: str, kind: str = "Role") -> dict[str, Any]:
    subjects = [{"kind": "User", "name": "jane", "apiGroup": GROUP}]
    return {
        "metadata": {"name": name},
        "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
    }


async def hold(api: Http, *rules: Rule) -> None:
    """Let jane write roles and bindings everywhere, and give her the rules."""
    await api.call("DELETE", f"{RBAC}/clusterroles/held")
    await api.ok("POST", f"{RBAC}/clusterroles", role("held", WRITER, *rules))
    await api.call("POST", f"{RBAC}/clusterrolebindings", binding("held", "held", "ClusterRole"))


async def jane(api: Http, method: str, path: str, body: Any, kind: str = "application/json") -> tuple[int, str]:
    """(status, message) of a request by jane."""
    status, answer = await api.call(method, path, body, kind, token=JANE)
    return status, answer.get("message", "")


async def test_a_binding_to_a_missing_role_needs_bind(api: Http) -> None:
    """Else its author gets whatever a role of that name grants later."""
    for reference, plural in (("Role", "roles"), ("ClusterRole", "clusterroles")):
        status, text = await jane(api, "POST", BINDINGS, binding("early", "later", reference))
        assert (status, text) == (404, f'{plural}.{GROUP} "later" not found')
    status, _ = await jane(api, "POST", f"{RBAC}/clusterrolebindings", binding("early", "later", "ClusterRole"))
    assert status == 404
    await hold(api, rule("roles", "bind", group=GROUP, names=("later",)))
    assert (await jane(api, "POST", BINDINGS, binding("early", "later")))[0] == 201
    assert (await jane(api, "POST", BINDINGS, binding("early2", "other")))[0] == 404
    assert (await jane(api, "POST", BINDINGS, binding("early3", "later", "ClusterRole")))[0] == 404


async def test_a_binding_gives_what_its_author_holds_or_may_bind(api: Http) -> None:
    await api.ok("POST", ROLES, role("reader", rule("secrets", "get", "list")))
    status, text = await jane(api, "POST", BINDINGS, binding("reader", "reader"))
    assert status == 403
    assert text == (
        f'rolebindings.{GROUP} "reader" is forbidden: user "jane" (groups=["developers" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )
    await hold(api, rule("secrets", "get"))
    status, text = await jane(api, "POST", BINDINGS, binding("reader", "reader"))
    assert status == 403 and text.endswith('{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}')
    await hold(api, rule("secrets", "*"))
    assert (await jane(api, "POST", BINDINGS, binding("reader", "reader")))[0] == 201
    await hold(api, rule("roles", "bind", group=GROUP))
    assert (await jane(api, "POST", BINDINGS, binding("reader2", "reader")))[0] == 201


async def test_a_change_of_a_binding_is_checked_like_its_creation(api: Http) -> None:
    await api.ok("POST", ROLES, role("reader", rule("secrets", "get")))
    made = binding("reader", "reader")
    await api.ok("POST", BINDINGS, {**made, "subjects": []})
    assert (await jane(api, "PUT", f"{BINDINGS}/reader", made))[0] == 403
    assert (await jane(api, "PATCH", f"{BINDINGS}/reader", {"subjects": made["subjects"]}, MERGE))[0] == 403
    # what the garbage collector does grants nothing
    finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
    assert (await jane(api, "PATCH", f"{BINDINGS}/reader", finalizers, MERGE))[0] == 200
    await hold(api, rule("secrets", "get"))
    assert (await jane(api, "PATCH", f"{BINDINGS}/reader", {"subjects": made["subjects"]}, MERGE))[0] == 200


async def test_a_role_gives_what_its_author_holds_or_may_escalate(api: Http) -> None:
    wanted = role("more", rule("pods", "delete", "get"))
    await hold(api, rule("pods", "get"))
    status, text = await jane(api, "POST", ROLES, wanted)
    assert status == 403 and text.endswith('{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}')
    await api.ok("POST", ROLES, role("more"))
    assert (await jane(api, "PUT", f"{ROLES}/more", wanted))[0] == 403
    assert (await jane(api, "PATCH", f"{ROLES}/more", {"rules": wanted["rules"]}, MERGE))[0] == 403
    await hold(api, rule("roles", "escalate", group=GROUP, names=("more",)))
    assert (await jane(api, "PUT", f"{ROLES}/more", wanted))[0] == 200
    # a request to create has no name, so a right for one name does not cover it
    assert (await jane(api, "POST", ROLES, role("more2", rule("pods", "get"))))[0] == 403
    await hold(api, rule("roles", "escalate", group=GROUP))
    assert (await jane(api, "POST", ROLES, role("more2", rule("pods", "get"))))[0] == 201


@pytest.mark.parametrize(
    ("held", "wanted", "status"),
    [
        (rule("*/status", "get"), rule("pods/status", "get"), 201),
        (rule("*/status", "get"), rule("pods", "get"), 403),
        (rule("pods", "get"), rule("pods/status", "get"), 403),
        (rule("pods", "get", names=("a", "b")), rule("pods", "get", names=("b",)), 201),
        (rule("pods", "get", names=("a",)), rule("pods", "get", names=("a", "b")), 403),
        (rule("pods", "get", names=("a",)), rule("pods", "get"), 403),
        (rule("pods", "get", "list"), rule("pods", "*"), 403),
        (rule("pods", "get"), rule("*", "get"), 403),
        (rule("pods", "get"), rule("pods", "get", group="*"), 403),
    ],
)
async def test_rules_are_covered_part_by_part(api: Http, held: Rule, wanted: Rule, status: int) -> None:
    await hold(api, held)
    assert (await jane(api, "POST", ROLES, role("wanted", wanted)))[0] == status


async def test_paths_are_covered_by_patterns(api: Http) -> None:
    await hold(api, {"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]})
    where = f"{RBAC}/clusterroles"
    inside, outside = ({"nonResourceURLs": [path], "verbs": ["get"]} for path in ("/metrics/a", "/logs"))
    assert (await jane(api, "POST", where, role("inside", inside)))[0] == 201
    status, text = await jane(api, "POST", where, role("outside", outside))
    assert status == 403 and text.endswith('{NonResourceURLs:["/logs"], Verbs:["get"]}')


async def test_an_aggregation_rule_needs_everything(api: Http) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    wanted = {"metadata": {"name": "sum"}, "aggregationRule": selector}
    status, text = await jane(api, "POST", f"{RBAC}/clusterroles", wanted)
    assert status == 403 and text.endswith("must have cluster-admin privileges to use an aggregationRule")


async def test_an_update_that_creates_needs_the_right_to_create(api: Http) -> None:
    updater = rule("leases", "update", "patch", group="coordination.k8s.io")
    await api.ok("POST", ROLES, role("updater", updater))
    await api.ok("POST", BINDINGS, binding("updater", "updater"))
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mine"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "mine"}, "spec": {}}
    status, text = await jane(api, "PUT", path, lease)
    assert (status, text) == (
        403,
        'leases.coordination.k8s.io "mine" is forbidden: User "jane" cannot create resource "leases" in API group '
        '"coordination.k8s.io" in the namespace "default"',
    )
    applied = f"{path}?fieldManager=jane", lease, "application/apply-patch+yaml"
    assert await jane(api, "PATCH", *applied) == (status, text)
    assert (await jane(api, "PATCH", path, lease, "application/merge-patch+json"))[0] == 404, "it creates nothing"
    await hold(api, rule("leases", "create", group="coordination.k8s.io"))
    assert (await jane(api, "PUT", path, lease))[0] == 201
    await api.ok("DELETE", path)
    assert (await jane(api, "PATCH", *applied))[0] == 201
    assert (await jane(api, "PATCH", *applied))[0] == 200
