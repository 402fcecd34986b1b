"""RBAC of a new cluster: the authorizer, the checks of its writers, the default roles and bindings.

Kubernetes: the bootstrap policy of plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.auth.authorization import MASTERS
from volcano_py.sandbox.apiserver.auth.rbac import GROUP, Rbac
from volcano_py.sandbox.apiserver.auth.rbac_escalation import check_binding, check_role
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.store import ADDED

Object = dict[str, Any]

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
