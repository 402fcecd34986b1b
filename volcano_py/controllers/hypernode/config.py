"""The discovery configuration: the key `volcano-controller.conf` of the controllers' ConfigMap.

For example:

    networkTopologyDiscovery:
      - source: label
        enabled: true
        config: {networkTopologyTypes: {rack: [{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]}}
      - source: ufm
        enabled: true
        interval: 10m
        credentials: {secretRef: {name: ufm, namespace: volcano-system}}
        config: {endpoint: "https://ufm.example.com", insecureSkipVerify: false}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml
from msgspec import Struct, field

from volcano_py.api import yaml_documents
from volcano_py.api.duration import parse_duration

KEY = "volcano-controller.conf"
DEFAULT_INTERVAL = 3600.0


class Source(Struct):
    """One source of the discovery."""

    name: str
    enabled: bool = False
    interval: float = 0.0
    """Seconds; 0 or less means one hour."""
    secret_name: str = ""
    secret_namespace: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    """Settings of this kind of source."""

    @property
    def period(self) -> float:
        return self.interval if self.interval > 0 else DEFAULT_INTERVAL


def where() -> tuple[str, str]:
    """Namespace and name of the ConfigMap, from the environment variables of the installation."""
    release = os.environ.get("HELM_RELEASE_NAME") or "volcano"
    return os.environ.get("KUBE_POD_NAMESPACE") or "volcano-system", f"{release}-controller-configmap"


def parse(data: Mapping[str, str] | None) -> list[Source]:
    """The sources in a ConfigMap's data. Raises ValueError with the invalid field."""
    if KEY not in (data or {}):
        raise ValueError(f"config key not found in ConfigMap: {KEY}")
    assert data is not None
    try:
        document = yaml_documents.load(data[KEY])
    except yaml.YAMLError as error:
        raise ValueError(f"{KEY} is not YAML: {' '.join(str(error).split())}") from None
    entries = _field(document or {}, "", dict).get("networkTopologyDiscovery") or []
    return [
        _source(_field(entry, where, dict), where)
        for number, entry in enumerate(_field(entries, "networkTopologyDiscovery", list))
        if (where := f"networkTopologyDiscovery[{number}]")
    ]


def _source(entry: dict[str, Any], path: str) -> Source:
    name = _field(entry.get("source"), f"{path}.source", str)
    credentials = _field(entry.get("credentials") or {}, f"{path}.credentials", dict)
    reference = _field(credentials.get("secretRef") or {}, f"{path}.credentials.secretRef", dict)
    interval = str(entry.get("interval") or "0s")
    try:
        seconds = parse_duration(interval)
    except ValueError as error:
        raise ValueError(f"{path}.interval: {error}") from None
    return Source(
        name=name,
        enabled=_field(entry.get("enabled", False), f"{path}.enabled", bool),
        interval=seconds,
        secret_name=str(reference.get("name") or ""),
        secret_namespace=str(reference.get("namespace") or ""),
        config=_field(entry.get("config") or {}, f"{path}.config", dict),
    )


def _field(value: Any, path: str, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{KEY}: {path or 'the document'} must be a {_WORDS[kind]}, got {value!r}")
    return value


_WORDS = {dict: "map", list: "list", str: "string", bool: "boolean"}
