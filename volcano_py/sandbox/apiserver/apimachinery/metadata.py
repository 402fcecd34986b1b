"""Metadata of all kinds: names, labels, annotations, owners, finalizers; uid, times, generated names.

Kubernetes: ObjectMeta validation and the create and update preparation of the generic registry.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    field_forbidden,
    invalid_value,
    required,
    too_long,
)

DNS1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
DNS1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
DNS1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")

LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED_MESSAGE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_RANDOM = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' alphabet: no vowels, and no characters that are easily confused
ANNOTATIONS_LIMIT = 256 * 1024


_NOW: list[Any] = [0, ""]


def now() -> str:
    """The time in the format of the API, to the second."""
    second = int(time.time())
    if _NOW[0] != second:
        _NOW[:] = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text: str = _NOW[1]
    return text


def now_micro() -> str:
    """The time in the format of the API, to the microsecond."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_uid() -> str:
    """A random (version 4) UUID."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def generated(base: str) -> str:
    """A name from a generateName prefix: with five random characters, at most 63 characters long."""
    return base[:58] + "".join(_RANDOM[byte % 27] for byte in os.urandom(5))


# --- names -----------------------------------------------------------------------------------------------------------


def subdomain_errors(name: str) -> list[str]:
    out = []
    if len(name) > 253:
        out.append("must be no more than 253 characters")
    if not DNS1123_SUBDOMAIN.match(name):
        out.append(SUBDOMAIN_MESSAGE)
    return out


def label_errors(name: str) -> list[str]:
    out = []
    if len(name) > 63:
        out.append("must be no more than 63 bytes")
    if not DNS1123_LABEL.match(name):
        out.append(LABEL_MESSAGE)
    return out


def dns1035_errors(name: str) -> list[str]:
    out = []
    if len(name) > 63:
        out.append("must be no more than 63 bytes")
    if not DNS1035_LABEL.match(name):
        out.append(DNS1035_MESSAGE)
    return out


def path_segment_errors(name: str) -> list[str]:
    """Names of RBAC objects: anything that is valid in a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def qualified_errors(name: str) -> list[str]:
    """Label keys, annotation keys, resource names: an optional DNS prefix and a name of at most 63 characters."""
    parts = name.split("/")
    out: list[str] = []
    if len(parts) == 2:
        prefix, short = parts
        if not prefix:
            out.append("prefix part must be non-empty")
        else:
            out.extend("prefix part " + message for message in subdomain_errors(prefix))
    elif len(parts) == 1:
        short = parts[0]
    else:
        return [
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    if not short:
        out.append("name part must be non-empty")
    elif len(short) > 63:
        out.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.match(short):
        out.append(QUALIFIED_MESSAGE)
    return out


def label_value_errors(value: str) -> list[str]:
    out = []
    if len(value) > 63:
        out.append("must be no more than 63 bytes")
    if not _LABEL_VALUE.match(value):
        out.append(LABEL_VALUE_MESSAGE)
    return out


_GOOD_KEYS: set[str] = set()
_GOOD_VALUES: set[str] = set()


def labels_causes(labels: dict[str, str], path: str) -> list[Cause]:
    """The errors of a label map; texts that were validated before are not validated again."""
    out: list[Cause] = []
    for key, value in labels.items():
        if key not in _GOOD_KEYS:
            errors = qualified_errors(key)
            out.extend(invalid_value(path, key, message) for message in errors)
            if not errors and len(_GOOD_KEYS) < 50_000:
                _GOOD_KEYS.add(key)
        if value not in _GOOD_VALUES:
            errors = label_value_errors(value)
            out.extend(invalid_value(path, value, message) for message in errors)
            if not errors and len(_GOOD_VALUES) < 50_000:
                _GOOD_VALUES.add(value)
    return out


def annotations_causes(annotations: dict[str, str], path: str) -> list[Cause]:
    out: list[Cause] = []
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if key not in _GOOD_KEYS:
            out.extend(invalid_value(path, key, message) for message in qualified_errors(key.lower()))
    if size > ANNOTATIONS_LIMIT:
        out.append(too_long(path, ANNOTATIONS_LIMIT))
    return out


def validate(
    metadata: dict[str, Any], namespaced: bool, name_errors: Any, path: str = "metadata", builtin: bool = True
) -> list[Cause]:
    """The errors of an object's metadata; `name_errors(name)` is the kind's own rule for names."""
    out: list[Cause] = []
    generate_name = metadata.get("generateName")
    if generate_name:
        # a prefix may end in a dash
        shown = generate_name[:-1] + "a" if generate_name.endswith("-") else generate_name
        out.extend(invalid_value(f"{path}.generateName", generate_name, m) for m in name_errors(shown))
    name = metadata.get("name")
    if not name:
        out.append(required(f"{path}.name", "name or generateName is required"))
    else:
        out.extend(invalid_value(f"{path}.name", name, message) for message in name_errors(name))
    namespace = metadata.get("namespace")
    if namespaced:
        if not namespace:
            out.append(required(f"{path}.namespace"))
        else:
            out.extend(invalid_value(f"{path}.namespace", namespace, m) for m in label_errors(namespace))
    elif namespace:
        out.append(field_forbidden(f"{path}.namespace", "not allowed on this type"))
    if metadata.get("generation", 0) < 0:
        out.append(invalid_value(f"{path}.generation", metadata["generation"], "must be greater than or equal to 0"))
    if metadata.get("labels"):
        out.extend(labels_causes(metadata["labels"], f"{path}.labels"))
    if metadata.get("annotations"):
        out.extend(annotations_causes(metadata["annotations"], f"{path}.annotations"))
    out.extend(owners_causes(metadata.get("ownerReferences") or [], f"{path}.ownerReferences"))
    out.extend(finalizers_causes(metadata.get("finalizers") or [], f"{path}.finalizers", builtin))
    return out


def owners_causes(owners: list[dict[str, Any]], path: str) -> list[Cause]:
    out: list[Cause] = []
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion", "")
        if not version or version.count("/") > 1:
            out.append(invalid_value(f"{path}.apiVersion", version, "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                out.append(invalid_value(f"{path}.{key}", owner.get(key, ""), "must not be empty"))
        if version == "v1" and owner.get("kind") == "Event":
            out.append(invalid_value(path, "/v1, Kind=Event", "is disallowed from being an owner"))
        if owner.get("controller"):
            if controller:
                both = f"{controller} and {owner.get('name')}"
                text = f'Only one reference can have Controller set to true. Found "true" in references for {both}'
                out.append(invalid_value(path, owners, text))
            controller = owner.get("name", "")
    return out


_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}


def finalizer_warnings(finalizers: list[str], path: str = "metadata.finalizers") -> list[str]:
    """The warnings for a custom resource; for a built-in kind they are errors."""
    out = []
    for finalizer in finalizers:
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            how = " including a path (/)" if "." in finalizer else ""
            why = "to avoid accidental conflicts with other finalizer writers"
            out.append(f'{path}: "{finalizer}": prefer a domain-qualified finalizer name{how} {why}')
    return out


def finalizers_causes(finalizers: list[str], path: str, builtin: bool = True) -> list[Cause]:
    out: list[Cause] = []
    for index, finalizer in enumerate(finalizers):
        errors = qualified_errors(finalizer)
        out.extend(invalid_value(path, finalizer, message) for message in errors)
        if builtin and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            out.append(invalid_value(f"{path}[{index}]", finalizer, text))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        out.append(invalid_value(path, finalizers, text))
    return out


def validate_update(new: dict[str, Any], old: dict[str, Any], path: str = "metadata") -> list[Cause]:
    """The errors of changes to immutable metadata."""
    out: list[Cause] = []
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        if new.get(key) != old.get(key):
            out.append(invalid_value(f"{path}.{key}", new.get(key), "field is immutable"))
    if new.get("deletionGracePeriodSeconds") != old.get("deletionGracePeriodSeconds"):
        value = new.get("deletionGracePeriodSeconds")
        out.append(invalid_value(f"{path}.deletionGracePeriodSeconds", value, "field is immutable"))
    if old.get("deletionTimestamp"):
        added = [f for f in new.get("finalizers") or [] if f not in (old.get("finalizers") or [])]
        if added:
            text = (
                f"no new finalizers can be added if the object is being deleted, found new finalizers {added}".replace(
                    "'", '"'
                )
            )
            out.append(field_forbidden(f"{path}.finalizers", text))
    return out
