"""RBAC: evaluates roles and bindings. Kubernetes: plugin/pkg/auth/authorizer/rbac."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.auth.authorization import Access
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
_PLURALS = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")


class Rbac:
    """The rules that are bound to users; read again when a role or binding has changed."""

    def __init__(self, api: Api) -> None:
        self.collections = {plural: api.resource(GROUP, plural).collection for plural in _PLURALS}
        self.stale = True
        # (namespace or "" for everywhere, subjects, rules)
        self.bound: list[tuple[str, frozenset[tuple[str, str]], list[Object]]] = []
        for collection in self.collections.values():
            collection.observers.append(self._forget)

    def _forget(self, event: Any) -> None:
        self.stale = True

    def _load(self) -> None:
        self.bound.clear()
        for plural in ("clusterrolebindings", "rolebindings"):
            for entry in self.collections[plural].select():
                binding = entry.load()
                role = self.role(binding["roleRef"], entry.namespace)
                rules = (role.load().get("rules") or []) if role is not None else []
                if rules:
                    self.bound.append((entry.namespace, _subjects(binding, entry.namespace), rules))
        self.stale = False

    def role(self, reference: Object, namespace: str) -> Entry | None:
        """The role that a binding in a namespace refers to, None if it does not exist."""
        name = reference.get("name", "")
        if reference.get("kind") == "ClusterRole":
            return self.collections["clusterroles"].get("", name)
        return self.collections["roles"].get(namespace, name)

    def rules_for(self, user: User, namespace: str) -> list[Object]:
        """Every rule that applies to a user in a namespace."""
        if self.stale:
            self._load()
        names = {("User", user.name), *(("Group", group) for group in user.groups)}
        out: list[Object] = []
        for where, subjects, rules in self.bound:
            if (not where or where == namespace) and not names.isdisjoint(subjects):
                out.extend(rules)
        return out

    def authorize(self, access: Access) -> bool | None:
        """The Authorizer."""
        rules = self.rules_for(access.user, access.namespace)
        if access.path:
            return True if any(_allows_path(rule, access) for rule in rules) else None
        return True if any(_allows(rule, access) for rule in rules) else None

    def lister(self, user: User, namespace: str) -> tuple[list[Object], list[Object]]:
        """The rules of a user for a SelfSubjectRulesReview: (on resources, on paths)."""
        rules = self.rules_for(user, namespace)
        paths = [rule for rule in rules if rule.get("nonResourceURLs")]
        return [rule for rule in rules if rule.get("resources")], paths


def _subjects(binding: Object, namespace: str) -> frozenset[tuple[str, str]]:
    out = set()
    for subject in binding.get("subjects") or ():
        if subject["kind"] == "ServiceAccount":
            where = subject.get("namespace") or namespace
            out.add(("User", f"system:serviceaccount:{where}:{subject['name']}"))
        else:
            out.add((subject["kind"], subject["name"]))
    return frozenset(out)


def _has(values: list[str] | None, wanted: str) -> bool:
    return bool(values) and (wanted in values or "*" in values)  # type: ignore[operator]


def _allows(rule: Object, access: Access) -> bool:
    if not _has(rule.get("verbs"), access.verb) or not _has(rule.get("apiGroups"), access.group):
        return False
    resources = rule.get("resources") or []
    whole = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    if not ("*" in resources or whole in resources or f"*/{access.subresource}" in resources):
        return False
    names = rule.get("resourceNames")
    return not names or access.name in names


def _allows_path(rule: Object, access: Access) -> bool:
    if not _has(rule.get("verbs"), access.verb):
        return False
    for pattern in rule.get("nonResourceURLs") or ():
        if pattern in ("*", access.path):
            return True
        if pattern.endswith("*") and access.path.startswith(pattern[:-1]):
            return True
    return False
