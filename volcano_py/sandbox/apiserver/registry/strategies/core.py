"""ConfigMaps, Secrets, Services, claims, quotas, events and other small core kinds.

Kubernetes: their packages in pkg/registry/core and pkg/apis/core.
"""

from __future__ import annotations

import base64
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata, quantity
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    field_forbidden,
    invalid_value,
    required,
    unsupported,
)
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

MAX_SECRET = 1024 * 1024
_KEY_OK = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _key_causes(keys: Any, path: str) -> list[Cause]:
    out = []
    for key in keys:
        if not key or not set(key) <= _KEY_OK:
            out.append(invalid_value(f"{path}[{key}]", key, _KEY_MESSAGE))
        elif len(key) > 253:
            out.append(invalid_value(f"{path}[{key}]", key, "must be no more than 253 characters"))
        elif key in (".", "..") or key.startswith(".."):
            out.append(invalid_value(f"{path}[{key}]", key, f"must not be '{key}'"))
    return out


def _config_map(obj: Object, request: Request) -> list[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    out = _key_causes(data, "data") + _key_causes(binary, "binaryData")
    out += [
        invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
    ]
    size = sum(len(v) for v in data.values()) + sum(len(v) * 3 // 4 for v in binary.values())
    if size > MAX_SECRET:
        out.append(Cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", "[]"))
    return out


def _immutable(kind_fields: tuple[str, ...]) -> Any:
    def validate(new: Object, old: Object) -> list[Cause]:
        if not old.get("immutable"):
            return []
        out = []
        if not new.get("immutable"):
            out.append(field_forbidden("immutable", "field is immutable when `immutable` is set"))
        for name in kind_fields:
            if new.get(name) != old.get(name):
                out.append(field_forbidden(name, "field is immutable when `immutable` is set"))
        return out

    return validate


_frozen_config_map = _immutable(("data", "binaryData"))
_frozen_secret = _immutable(("data",))


def _config_map_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out: list[Cause] = _frozen_config_map(new, old)
    return out + _config_map(new, request)


def _default_secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    text = obj.pop("stringData", None)
    if text:
        data = obj.setdefault("data", {})
        for key, value in text.items():
            data[key] = base64.b64encode(value.encode()).decode()


_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _secret(obj: Object, request: Request) -> list[Cause]:
    data = obj.get("data") or {}
    out = _key_causes(data, "data")
    for key in _SECRET_KEYS.get(obj.get("type", ""), ()):
        if key not in data:
            out.append(required(f"data[{key}]"))
    if sum(len(value) * 3 // 4 for value in data.values()) > MAX_SECRET:
        out.append(Cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", "data"))
    return out


def _secret_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out: list[Cause] = _frozen_secret(new, old)
    if new.get("type") != old.get("type"):
        out.append(invalid_value("type", new.get("type", ""), "field is immutable"))
    return out + _secret(new, request)


def _secret_prepare_update(new: Object, old: Object, request: Request) -> None:
    if not new.get("type"):
        new["type"] = old.get("type", "Opaque")


# --- volumes ---------------------------------------------------------------------------------------------------------


def _default_claim(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _claim_create(obj: Object, request: Request) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": metadata.now()}
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if "kubernetes.io/pvc-protection" not in finalizers:
        finalizers.append("kubernetes.io/pvc-protection")


def _claim(obj: Object, request: Request) -> list[Cause]:
    spec = obj["spec"]
    out: list[Cause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        out.append(required("spec.accessModes", "at least 1 access mode is required"))
    choices = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
    for mode in modes:
        if mode not in choices:
            out.append(unsupported("spec.accessModes", mode, choices))
    wanted = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in wanted:
        out.append(required("spec.resources[storage]"))
    elif quantity.parse(wanted["storage"]) <= 0:
        text = "must be greater than zero"
        out.append(invalid_value("spec.resources[storage]", wanted["storage"], text))
    return out


_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim_update(new: Object, old: Object, request: Request) -> list[Cause]:
    now, before = dict(new["spec"]), dict(old["spec"])
    out: list[Cause] = []
    if not before.get("volumeName"):
        before["volumeName"] = now.get("volumeName")
    if now.get("volumeName") is None:
        now["volumeName"] = before.get("volumeName")
    if before.get("storageClassName") is None and now.get("storageClassName") is not None:
        before["storageClassName"] = now["storageClassName"]  # the default class, set later
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound:
        before["resources"] = now.get("resources")
    if now != before:
        out.append(field_forbidden("spec", _CLAIM_IMMUTABLE))
    return out + _claim(new, request)


def _default_volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")


def _volume_create(obj: Object, request: Request) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": metadata.now()}
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if "kubernetes.io/pv-protection" not in finalizers:
        finalizers.append("kubernetes.io/pv-protection")


def _volume_causes(obj: Object, request: Request) -> list[Cause]:
    driver = ((obj["spec"].get("csi") or {}).get("driver") or "").lower()
    if "csi" not in obj["spec"]:
        return []
    if not driver:
        return [required("spec.csi.driver")]
    given = obj["spec"]["csi"]["driver"]
    return [invalid_value("spec.csi.driver", given, text) for text in metadata.subdomain_errors(driver)]


def _volume_status(new: Object, old: Object, request: Request) -> None:
    new["spec"] = old["spec"]
    status = new.setdefault("status", {})
    before = old.get("status") or {}
    if status.get("phase") != before.get("phase") and not status.get("lastPhaseTransitionTime"):
        status["lastPhaseTransitionTime"] = metadata.now()


STRATEGIES = {
    "configmaps": Strategy(validate_create=_config_map, validate_update=_config_map_update, create_on_update=False),
    "secrets": Strategy(
        default=_default_secret,
        validate_create=_secret,
        prepare_update=_secret_prepare_update,
        validate_update=_secret_update,
        fields=lambda obj: {"type": obj.get("type", "")},
        field_names=frozenset({"type"}),
    ),
    "serviceaccounts": Strategy(returns_deleted=True),
    "persistentvolumeclaims": Strategy(
        default=_default_claim,
        prepare_create=_claim_create,
        validate_create=_claim,
        validate_update=_claim_update,
        has_status=True,
        returns_deleted=True,
        reset_fields=("status",),
    ),
    "persistentvolumes": Strategy(
        default=_default_volume,
        prepare_create=_volume_create,
        validate_create=_volume_causes,
        prepare_status=_volume_status,
        has_status=True,
        returns_deleted=True,
        reset_fields=("status",),
    ),
    "endpoints": Strategy(create_on_update=True),
    "podtemplates": Strategy(has_generation=False, returns_deleted=True),
    "replicationcontrollers": Strategy(has_status=True, has_generation=True, reset_fields=("status",)),
}
