"""RBAC: evaluates roles and bindings, and creates the roles of a new cluster.

Kubernetes: plugin/pkg/auth/authorizer/rbac and its bootstrap policy.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.auth.authorization import MASTERS, Access
from volcano_py.sandbox.apiserver.auth.rbac_escalation import GROUP, check_binding, check_role
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.store import ADDED, Entry

Object = dict[str, Any]

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


# --- a new cluster ---------------------------------------------------------------------------------------------------

_VIEW = ["get", "list", "watch"]
_EDIT = ["create", "delete", "deletecollection", "patch", "update"]
_CORE = [
    "bindings",
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "persistentvolumeclaims",
    "persistentvolumeclaims/status",
    "pods",
    "pods/log",
    "pods/status",
    "replicationcontrollers",
    "replicationcontrollers/scale",
    "resourcequotas",
    "resourcequotas/status",
    "serviceaccounts",
    "services",
    "services/status",
]
_APPS = ["daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets"]


def _rules(verbs: list[str]) -> list[Object]:
    return [
        {"verbs": verbs, "apiGroups": [""], "resources": _CORE},
        {"verbs": verbs, "apiGroups": ["apps"], "resources": [*_APPS, "statefulsets/scale", "controllerrevisions"]},
        {"verbs": verbs, "apiGroups": ["batch"], "resources": ["cronjobs", "jobs", "cronjobs/status", "jobs/status"]},
        {"verbs": verbs, "apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]},
        {"verbs": verbs, "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"]},
        {"verbs": verbs, "apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "networkpolicies"]},
    ]


_SECRETS = {"verbs": [*_VIEW, *_EDIT], "apiGroups": [""], "resources": ["secrets", "pods/exec", "pods/eviction"]}
_ALL: list[Object] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz"]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_SELF: list[Object] = [
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
]
_ROLES: list[tuple[str, list[Object], dict[str, str]]] = [
    ("cluster-admin", _ALL, {}),
    (
        "admin",
        [
            *_rules([*_VIEW, *_EDIT]),
            _SECRETS,
            {"verbs": [*_VIEW, *_EDIT], "apiGroups": [GROUP], "resources": ["roles", "rolebindings"]},
        ],
        {},
    ),
    ("edit", [*_rules([*_VIEW, *_EDIT]), _SECRETS], {f"{GROUP}/aggregate-to-admin": "true"}),
    ("view", _rules(_VIEW), {f"{GROUP}/aggregate-to-edit": "true"}),
    ("system:discovery", [{"verbs": ["get"], "nonResourceURLs": [*_DISCOVERY, "/version", "/version/"]}], {}),
    ("system:public-info-viewer", [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}], {}),
    ("system:basic-user", _SELF, {}),
]
_BINDINGS = {
    "cluster-admin": [MASTERS],
    "system:discovery": ["system:authenticated"],
    "system:basic-user": ["system:authenticated"],
    "system:public-info-viewer": ["system:authenticated", "system:unauthenticated"],
}


def install(api: Api) -> None:
    """Authorize by RBAC, and create the default roles and bindings."""
    rbac = Rbac(api)
    api.extensions["rbac"] = rbac
    api.extensions.setdefault("authorizers", []).append(rbac.authorize)
    api.extensions.setdefault("rule_listers", []).append(rbac.lister)
    for plural, check in (
        ("roles", check_role),
        ("clusterroles", check_role),
        ("rolebindings", check_binding),
        ("clusterrolebindings", check_binding),
    ):
        api.resource(GROUP, plural).strategy.authorize = check
    for name, rules, labels in _ROLES:
        _put(api, "clusterroles", name, {"rules": rules}, labels)
    for name, groups in _BINDINGS.items():
        subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups]
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        _put(api, "clusterrolebindings", name, {"subjects": subjects, "roleRef": role}, {})


def _put(api: Api, plural: str, name: str, body: Object, labels: dict[str, str]) -> None:
    resource = api.resource(GROUP, plural)
    if resource.collection.get("", name) is not None:
        return  # an existing cluster
    stamp = metadata.now()
    fields: Object = {f"f:{key}": {} for key in body}
    meta = {
        "name": name,
        "uid": metadata.new_uid(),
        "creationTimestamp": stamp,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "managedFields": [
            {
                "manager": "kube-apiserver",
                "operation": "Update",
                "apiVersion": resource.api_version,
                "time": stamp,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
        ],
    }
    made = codec.normalise(resource.type, {"metadata": meta, **body}, codec.Unknown())
    api.write(resource, ADDED, made)
