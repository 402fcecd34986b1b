"""A container's environment variables, arguments and program: references resolved, $(VAR) expanded.

The base is a few variables of the user who started the sandbox, as an image would set some: PATH, HOME,
language and time zone. All others are not passed on.

Kubernetes: makeEnvironmentVariables of the kubelet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from volcano_py.sandbox.kubelet.processes import references
from volcano_py.sandbox.kubelet.processes.problem import config_error
from volcano_py.sandbox.kubelet.processes.references import Lookup

Object = dict[str, Any]

INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
_SOURCES = {"configMap": ("configmaps", "configmap"), "secret": ("secrets", "secret")}
_VARIABLE = re.compile(r"\$(\$|\(([^)]*)\))")


def base(source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of every process."""
    return {name: source[name] for name in INHERITED if name in source}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by the variable's value; unknown names stay, and $$ is a dollar sign."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else variables.get(match[2], match[0])

    return _VARIABLE.sub(value, text)


def variables(pod: Object, container: Object, lookup: Lookup, allocatable: Object) -> dict[str, str]:
    """The variables of the container's env and envFrom; NotReady when the object of a reference is missing."""
    namespace = pod["metadata"]["namespace"]
    out: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for what in _SOURCES:
            reference = source.get(what + "Ref")
            if reference is not None:
                rows = _data(lookup, what, namespace, reference) or {}
                prefix = source.get("prefix") or ""
                out |= {prefix + key: value.decode("utf-8", "replace") for key, value in rows.items()}
    for row in container.get("env") or []:
        source = row.get("valueFrom")
        if not source:
            out[row["name"]] = expand(row.get("value") or "", out)
        elif source.get("fieldRef"):
            out[row["name"]] = references.field(pod, source["fieldRef"]["fieldPath"])
        elif source.get("resourceFieldRef"):
            out[row["name"]] = references.resource(pod, container, source["resourceFieldRef"], allocatable)
        else:
            found = _key(lookup, namespace, source)
            if found is not None:
                out[row["name"]] = found
    return out


def _key(lookup: Lookup, namespace: str, source: Object) -> str | None:
    for what, (_, shown) in _SOURCES.items():
        reference = source.get(what + "KeyRef")
        if reference is None:
            continue
        rows = _data(lookup, what, namespace, reference)
        if rows is not None and reference["key"] in rows:
            return rows[reference["key"]].decode("utf-8", "replace")
        if not reference.get("optional"):
            kind = "ConfigMap" if shown == "configmap" else "Secret"
            raise config_error(f"couldn't find key {reference['key']} in {kind} {namespace}/{reference['name']}")
    return None


def _data(lookup: Lookup, what: str, namespace: str, reference: Object) -> dict[str, bytes] | None:
    collection, shown = _SOURCES[what]
    name = reference.get("name") or ""
    found = lookup(collection, namespace, name)
    if found is not None:
        return references.data(collection, found)
    if not reference.get("optional"):
        raise config_error(f'{shown} "{name}" not found')
    return None
