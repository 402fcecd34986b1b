"""The document in a file that a user names: Volcano's configuration, alone or in a ConfigMap, or kube-scheduler's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.config import ConfigurationError, read_yaml

KEY = "volcano-scheduler.conf"
"""The key of a ConfigMap's data, as in Volcano's chart."""


class Document(NamedTuple):
    """`text` is Volcano's configuration; `profiles` is a KubeSchedulerConfiguration, or None."""

    text: str
    profiles: Mapping[str, Any] | None = None


def unwrap(text: str) -> Document:
    """Find the configuration in a text. Raises ConfigurationError."""
    document = read_yaml(text)
    if document is None:
        raise ConfigurationError("it is empty; a configuration has the keys actions and tiers")
    if not isinstance(document, dict):
        return Document(text)
    if document.get("kind") == "KubeSchedulerConfiguration":
        return Document("", document)
    if document.get("kind") != "ConfigMap":
        if "kind" in document and "actions" not in document and "tiers" not in document:
            what = " of ".join(str(document[key]) for key in ("kind", "apiVersion") if key in document)
            raise ConfigurationError(
                f"it is a {what}; this command reads Volcano's configuration (actions, tiers), "
                "a ConfigMap with it, or a KubeSchedulerConfiguration"
            )
        return Document(text)
    data = document.get("data")
    if not isinstance(data, dict) or not data:
        raise ConfigurationError(f"the ConfigMap has no data; put the configuration under the key {KEY}")
    if KEY in data:
        return Document(str(data[KEY]))
    if len(data) == 1:
        return Document(str(next(iter(data.values()))))
    raise ConfigurationError(f"the ConfigMap has the keys {', '.join(map(str, data))}, and none of them is {KEY}")
