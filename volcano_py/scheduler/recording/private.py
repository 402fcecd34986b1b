"""What no snapshot and no recording contains: environment, command lines, names of Secrets, free annotations.

Objects arrive as read-structs, which have dropped the fields that the scheduler does not read. Of the rest, this module
takes away what could be private, and nothing that decides. Secrets themselves are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from volcano_py.api import core, dra, storage

_ANNOTATIONS = ("volcano.sh", "k8s.io", "kubernetes.io", "hami.io", "nvidia.com", "huawei.com")
"""Domains of annotations that rules read; an annotation of another domain is not captured."""
_NOT_ANNOTATIONS = ("kubectl.kubernetes.io",)
"""`kubectl.kubernetes.io/last-applied-configuration` repeats the whole object."""
_BARE_ANNOTATIONS = ("sla-waiting-time", "pod-group-name")
_PARAMETERS = ("csi.storage.k8s.io/csi-driver-name",)
"""Parameters of StorageClasses that rules read; others name Secrets."""
_SECRETS = ("password", "passwd", "token", "secret", "credential", "apikey", "api-key", "authorization", "cert")


def without_private(obj: Any) -> Any:
    """A copy of a read-struct without what is private; the original is not changed."""
    annotations = obj.metadata.annotations
    if annotations:
        kept = {key: value for key, value in annotations.items() if _is_read(key)}
        if len(kept) != len(annotations):
            obj = replace(obj, metadata=replace(obj.metadata, annotations=kept or None))
    strip = _STRIP.get(type(obj))
    return strip(obj) if strip is not None else obj


def without_secrets(document: Any) -> Any:
    """A configuration without the metrics source, which has its password, and without values that look like secrets."""
    if isinstance(document, Mapping):
        return {
            key: without_secrets(value)
            for key, value in document.items()
            if key != "metrics" and not any(word in str(key).lower() for word in _SECRETS)
        }
    if isinstance(document, list):
        return [without_secrets(value) for value in document]
    return _without_user(document) if isinstance(document, str) else document


def _without_user(text: str) -> str:
    """An address without the user and the password before its host."""
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if separator else text


def _is_read(annotation: str) -> bool:
    domain, slash, _ = annotation.partition("/")
    if not slash:
        return annotation in _BARE_ANNOTATIONS
    return domain not in _NOT_ANNOTATIONS and any(
        domain == known or domain.endswith(f".{known}") for known in _ANNOTATIONS
    )


def _pod(pod: core.Pod) -> core.Pod:
    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=_containers(spec.containers),
            init_containers=_containers(spec.init_containers),
            volumes=[replace(v, secret=None, config_map=None) for v in spec.volumes] if spec.volumes else spec.volumes,
            service_account_name="",
        ),
        status=replace(pod.status, message=""),
    )


def _containers(containers: list[core.Container] | None) -> list[core.Container] | None:
    return [replace(c, command=None, args=None, env=None) for c in containers] if containers else containers


def _storage_class(found: storage.StorageClass) -> storage.StorageClass:
    kept = {key: value for key, value in (found.parameters or {}).items() if key in _PARAMETERS}
    return replace(found, parameters=kept or None)


def _resource_claim(claim: dra.ResourceClaim) -> dra.ResourceClaim:
    spec = replace(claim.spec, devices=replace(claim.spec.devices, config=None))
    allocation = claim.status.allocation
    devices = (allocation or {}).get("devices")
    if allocation is not None and isinstance(devices, dict):
        allocation = {**allocation, "devices": {key: value for key, value in devices.items() if key != "config"}}
    return replace(claim, spec=spec, status=replace(claim.status, allocation=allocation))


def _device_class(found: dra.DeviceClass) -> dra.DeviceClass:
    return replace(found, spec=replace(found.spec, config=None))


_STRIP: dict[type[Any], Callable[[Any], Any]] = {
    core.Pod: _pod,
    storage.StorageClass: _storage_class,
    dra.ResourceClaim: _resource_claim,
    dra.DeviceClass: _device_class,
}
