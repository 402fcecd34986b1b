"""Validation of CustomResourceDefinitions: names, versions, and structural schemas.

Kubernetes: the validation of apiextensions-apiserver.
"""

from __future__ import annotations

import re
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    field_forbidden,
    invalid_value,
    required,
    unsupported,
)
from volcano_py.sandbox.apiserver.cel import expressions
from volcano_py.sandbox.apiserver.printers import jsonpath
from volcano_py.sandbox.apiserver.schema import violations

Object = dict[str, Any]


def validate(crd: Object) -> list[Cause]:
    """The errors of a new definition."""
    spec = crd["spec"]
    names = spec.get("names") or {}
    group, plural = spec.get("group", ""), names.get("plural", "")
    out: list[Cause] = []
    name = crd["metadata"].get("name", "")
    if plural and group and metadata.subdomain_errors(name):
        return _only_names(names)
    if name != f"{plural}.{group}":
        out.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        out.append(required("spec.group"))
    else:
        out.extend(invalid_value("spec.group", group, m) for m in metadata.subdomain_errors(group))
        if "." not in group:
            text = "should be a domain with at least one dot"
            out.append(invalid_value("spec.group", group, text))
    scope = spec.get("scope", "")
    if scope not in ("Cluster", "Namespaced"):
        out.append(required("spec.scope") if not scope else unsupported("spec.scope", scope, ["Cluster", "Namespaced"]))
    _names(names, out)
    _versions(spec, out)
    if not (crd.get("status") or {}).get("storedVersions"):
        out.append(invalid_value("status.storedVersions", None, "must have at least one stored version"))
    return out


def _only_names(names: Object) -> list[Cause]:
    """If the object's name is malformed (an error of metadata), only the names are validated."""
    out: list[Cause] = []
    plural = names.get("plural", "")
    out.extend(invalid_value("spec.names.plural", plural, m) for m in metadata.dns1035_errors(plural))
    return out


def _names(names: Object, out: list[Cause]) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key, "")
        if not value:
            out.append(required(f"spec.names.{key}"))
        else:
            checked = value.lower() if "ind" in key else value
            out.extend(invalid_value(f"spec.names.{key}", value, m) for m in metadata.dns1035_errors(checked))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or []):
            at = f"spec.names.{key}[{index}]"
            out.extend(invalid_value(at, value, m) for m in metadata.dns1035_errors(value))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        text = "kind and listKind may not be the same"
        out.append(invalid_value("spec.names.listKind", names["listKind"], text))


def _versions(spec: Object, out: list[Cause]) -> None:
    versions = spec.get("versions") or []
    lifted = _all_versions_equal(versions)
    seen: set[str] = set()
    storage = 0
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        name = version.get("name", "")
        out.extend(invalid_value(f"{at}.name", name, m) for m in metadata.dns1035_errors(name))
        if name in seen:
            out.append(invalid_value("spec.versions", name, "must contain unique version names"))
        seen.add(name)
        storage += bool(version.get("storage"))
        if index and lifted:
            continue  # errors of all versions are reported once, under spec
        if lifted:
            out.extend(invalid_value("spec.version", name, m) for m in metadata.dns1035_errors(name))
            at = "spec"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        where = f"{at}.validation.openAPIV3Schema" if lifted else f"{at}.schema.openAPIV3Schema"
        if schema is None:
            out.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
        else:
            if spec.get("preserveUnknownFields"):
                text = "must be false in order to use defaults in the schema"
                out.append(invalid_value("spec.preserveUnknownFields", True, text))
            _root(schema, where, out)
        for number, column in enumerate(version.get("additionalPrinterColumns") or []):
            _column(column, f"{at}.additionalPrinterColumns[{number}]", out)
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            for key in ("specReplicasPath", "statusReplicasPath"):
                if not scale.get(key):
                    out.append(required(f"{at}.subresources.scale.{key}"))
    if storage != 1:
        text = "must have exactly one version marked as storage version"
        out.append(invalid_value("spec.versions", versions, text))
        out[-1].message = f"Invalid value: {text}"


def _all_versions_equal(versions: list[Object]) -> bool:
    """Whether all versions are equal: then their errors are reported under spec, as in v1beta1."""
    keys = ("schema", "subresources", "additionalPrinterColumns")
    return all(version.get(key) == versions[0].get(key) for version in versions for key in keys)


def _column(column: Object, at: str, out: list[Cause]) -> None:
    if not column.get("name"):
        out.append(required(f"{at}.name"))
    kinds = ["boolean", "date", "integer", "number", "string"]
    if column.get("type") not in kinds:
        text = f"must be one of {','.join(kinds)}"
        kind = column.get("type")
        out.append(invalid_value(f"{at}.type", kind, text) if kind else required(f"{at}.type", text))
    path = column.get("jsonPath", "")
    if not path:
        out.append(required(f"{at}.JSONPath"))
    else:
        try:
            if not path.startswith("."):
                raise ValueError("must be a simple json path starting with .")
            jsonpath.compiled(path)
        except ValueError as error:
            out.append(invalid_value(f"{at}.JSONPath", path, str(error)))


# --- structural schemas ----------------------------------------------------------------------------------------------

_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def _root(schema: Object, at: str, out: list[Cause]) -> None:
    if schema.get("type") != "object":
        if schema.get("type"):
            out.append(invalid_value(f"{at}.type", schema["type"], "must be object at the root"))
        else:
            out.append(required(f"{at}.type", "must not be empty at the root"))
    meta = (schema.get("properties") or {}).get("metadata")
    if isinstance(meta, dict):
        extra = set(meta) - {"type", "description", "properties"}
        bad = set(meta.get("properties") or {}) - {"name", "generateName"}
        if extra or bad:
            text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            out.append(field_forbidden(f"{at}.properties[metadata]", text))
    _structural(schema, at, out, root=True)


def _structural(schema: Object, at: str, out: list[Cause], root: bool = False) -> None:
    kind = schema.get("type", "")
    if (
        not kind
        and not root
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        out.append(required(f"{at}.type", "must not be empty for specified object fields"))
    elif kind and kind not in _TYPES:
        out.append(unsupported(f"{at}.type", kind, list(_TYPES)))
    regexp = schema.get("pattern")
    if regexp and violations.pattern(regexp) is None:
        text = f"must be a valid regular expression, but isn't: error parsing regexp: {regexp}"
        out.append(invalid_value(f"{at}.pattern", regexp, text))
    if "default" in schema:
        for cause in violations.causes(schema["default"], {k: v for k, v in schema.items() if k != "default"}):
            cause.field = f"{at}.default" + (f".{cause.field}" if cause.field else "")
            out.append(cause)
    for key in ("anyOf", "allOf", "oneOf"):
        for number, inner in enumerate(schema.get(key) or []):
            either = bool(schema.get("x-kubernetes-int-or-string"))
            _valued(inner, f"{at}.{key}[{number}]", out, either)
    if schema.get("not"):
        _valued(schema["not"], f"{at}.not", out)
    for number, rule in enumerate(schema.get("x-kubernetes-validations") or []):
        _rule(rule, schema, f"{at}.x-kubernetes-validations[{number}].rule", out)
    for key in ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id", "$schema"):
        if schema.get(key):
            out.append(field_forbidden(f"{at}.{key}", f"{key} is not supported"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(field_forbidden(f"{at}.uniqueItems", text))
    if schema.get("additionalProperties") is False:
        out.append(field_forbidden(f"{at}.additionalProperties", "additionalProperties cannot be set to false"))
    if schema.get("properties") and schema.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        out.append(field_forbidden(f"{at}.additionalProperties", text))
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict) and not (root and name in ("metadata",)):
            _structural(inner, f"{at}.properties[{name}]", out)
    items = schema.get("items")
    if kind == "array":
        if items is None:
            out.append(required(f"{at}.items", "must be specified"))
        elif isinstance(items, list):
            out.append(field_forbidden(f"{at}.items", "items must be a schema object and not an array"))
    if isinstance(items, dict):
        _structural(items, f"{at}.items", out)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        _structural(extra, f"{at}.additionalProperties", out)
    _list_type(schema, at, out)


def _valued(schema: Object, at: str, out: list[Cause], typed: bool = False) -> None:
    """Inside anyOf, allOf, oneOf and not, only values may be restricted; the structure (except the type if `typed`)
    is specified outside."""
    for key in ("type", "additionalProperties", "default", "nullable", "title", "description"):
        if schema.get(key) and not (key == "type" and typed):
            out.append(field_forbidden(f"{at}.{key}", "must be empty to be structural"))
    for name, inner in (schema.get("properties") or {}).items():
        _valued(inner, f"{at}.properties[{name}]", out)
    if isinstance(schema.get("items"), dict):
        _valued(schema["items"], f"{at}.items", out)


def _rule(rule: Object, schema: Object, at: str, out: list[Cause]) -> None:
    text = rule.get("rule", "")
    if not text.strip():
        out.append(required(at, "rule is not specified"))
        return
    shown = {"Rule": text, "Message": rule.get("message", ""), "FieldPath": rule.get("fieldPath", "")}
    fault = expressions.fault(text)
    if fault:
        out.append(invalid_value(at, shown, fault))
        return
    # the fields in a rule must exist, and a single field must be a boolean
    properties = schema.get("properties")
    if not properties or schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name in re.findall(r"(?<![\w.])(?:self|oldSelf)\.(\w+)(?!\w*\()", text):
        if name not in properties and not name.startswith("__"):
            out.append(invalid_value(at, shown, f"compilation failed: ERROR: undefined field '{name}'"))
            return
    lone = re.fullmatch(r"\s*self\.(\w+)\s*", text)
    if lone and properties[lone.group(1)].get("type") != "boolean":
        out.append(invalid_value(at, shown, "cel expression must evaluate to a bool"))


def _list_type(schema: Object, at: str, out: list[Cause]) -> None:
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if list_type is not None and schema.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        out.append(invalid_value(f"{at}.type", schema.get("type", ""), text))
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        out.append(unsupported(f"{at}.x-kubernetes-list-type", list_type, ["atomic", "map", "set"]))
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        out.append(
            required(f"{at}.x-kubernetes-list-type", text)
            if list_type is None
            else invalid_value(f"{at}.x-kubernetes-list-type", list_type, text)
        )
    if list_type == "map":
        if not keys:
            text = "must not be empty if x-kubernetes-list-type is map"
            out.append(required(f"{at}.x-kubernetes-list-map-keys", text))
        items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
        properties = (items or {}).get("properties") or {}
        for key in keys:
            inner = properties.get(key)
            if inner is None:
                text = "entries must all be names of item properties"
                out.append(invalid_value(f"{at}.x-kubernetes-list-map-keys[{keys.index(key)}]", key, text))
            elif key not in ((items or {}).get("required") or []) and "default" not in inner:
                text = "a key of x-kubernetes-list-map-keys must have a default or be a required property"
                out.append(required(f"{at}.items.properties[{key}].default", text))


def validate_update(new: Object, old: Object) -> list[Cause]:
    """The immutable parts of a served definition."""
    out = validate(new)
    now, before = new["spec"], old["spec"]
    established = any(
        row["type"] == "Established" and row["status"] == "True"
        for row in (old.get("status") or {}).get("conditions") or []
    )
    for key in ("group", "scope"):
        if now.get(key) != before.get(key) and established:
            out.append(invalid_value(f"spec.{key}", now.get(key), "field is immutable"))
    for key in ("kind", "plural"):
        if established and now["names"].get(key) != before["names"].get(key):
            out.append(invalid_value(f"spec.names.{key}", now["names"].get(key), "field is immutable"))
    known = {version["name"] for version in now.get("versions") or []}
    for index, version in enumerate((old.get("status") or {}).get("storedVersions") or []):
        if version not in known:
            text = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in it and removes it from "
                "status.storedVersions"
            )
            out.append(invalid_value(f"status.storedVersions[{index}]", version, text))
    return out
