"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396), with kube-apiserver's errors."""

from __future__ import annotations

import copy
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError, bad_request

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the copy operations of one patch may add: each could double the object."""


class PatchError(ValueError):
    """The patch is valid but cannot be applied to the object."""


def unprocessable() -> StatusError:
    """422 without an object: the patch could not be applied."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def merge_patch(target: Any, patch: Any) -> Any:
    """A new value: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = merge_patch(out.get(key), value)
        else:
            out[key] = value
    return out


def json_patch(target: Any, operations: Any) -> Any:
    """The target after all operations; raises StatusError (400 for a malformed patch, 422 for one that fails)."""
    if not isinstance(operations, list):
        kind = "object" if isinstance(operations, dict) else "value"
        text = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        raise bad_request(text)
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", text)
    root = {"": copy.deepcopy(target)}
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("error decoding patch: json: cannot unmarshal value into Go value of type map")
        try:
            copied += _apply(root, operation)
        except PatchError as error:
            raise unprocessable() from error  # kube-apiserver reports no reason
        if copied > MAX_COPIED:
            text = f"Unable to complete the copy, the accumulated size increase of copy is {copied}"
            raise StatusError(413, "RequestEntityTooLarge", f"{text}, exceeding the limit {MAX_COPIED}")
    return root[""]


def _apply(root: dict[str, Any], operation: dict[str, Any]) -> int:
    """Apply one operation; returns the number of bytes that it copied."""
    op, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise PatchError("missing path")
    if path == "" and op != "test":
        raise PatchError("the whole document cannot be changed")
    if op == "add":
        _add(root, path, _value(operation), insert=True)
    elif op == "replace":
        holder, key = _holder(root, path)
        if isinstance(holder, list):
            _index(holder, key, path)
        _put(holder, key, _value(operation))
    elif op == "remove":
        holder, key = _holder(root, path)
        if isinstance(holder, list):
            holder.pop(_index(holder, key, path))
        elif key in holder:
            del holder[key]
        else:
            raise PatchError(f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}")
    elif op in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchError("missing from")
        holder, key = _holder(root, source)
        value = _get(holder, key, source, op) if op == "move" or key in holder else None
        if op == "move":
            if isinstance(holder, list):
                holder.pop(_index(holder, key, source))
            else:
                del holder[key]
        _add(root, path, copy.deepcopy(value), insert=True)
    elif op == "test":
        holder, key = _holder(root, path)
        try:
            found = _get(holder, key, path, "test")
        except PatchError:
            found = None
        if not _same(found, operation.get("value")):
            raise PatchError(f"testing value {path} failed")
    else:
        raise PatchError(f"Unexpected kind: {op}")
    return len(orjson.dumps(value)) if op == "copy" else 0


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError("missing value")
    return operation["value"]


def _holder(root: dict[str, Any], path: str) -> tuple[Any, str]:
    if path == "":
        return root, ""
    if not path.startswith("/"):
        raise PatchError(f"unable to find path {path}")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
    holder = root[""]
    for part in parts[:-1]:
        try:
            holder = holder[_index(holder, part, path)] if isinstance(holder, list) else holder[part]
        except (KeyError, IndexError, TypeError):
            raise PatchError(f"doc is missing path: {path}: missing value") from None
    if not isinstance(holder, dict | list):
        raise PatchError(f"doc is missing path: {path}: missing value")
    return holder, parts[-1]


def _index(holder: list[Any], part: str, path: str) -> int:
    try:
        index = int(part)
    except ValueError:
        raise PatchError(f"doc is missing key: {path}: value was not a proper array index: {part!r}") from None
    if index < 0:
        index += len(holder)
    if not 0 <= index < len(holder):
        raise PatchError(
            f"error in patch for path {path}: Unable to access invalid index: {part}: invalid index referenced"
        )
    return index


def _get(holder: Any, key: str, path: str, op: str) -> Any:
    if isinstance(holder, list):
        return holder[_index(holder, key, path)]
    if key not in holder:
        raise PatchError(f"{op} operation does not apply: doc is missing key: {path}: missing value")
    return holder[key]


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, list):
        holder[int(key)] = value
    else:
        holder[key] = value


def _add(root: dict[str, Any], path: str, value: Any, insert: bool) -> None:
    holder, key = _holder(root, path)
    if isinstance(holder, list):
        if key == "-":
            holder.append(value)
            return
        try:
            index = int(key)
        except ValueError:
            raise PatchError(f"add operation does not apply: {path}: value was not a proper array index") from None
        if index < 0:
            index += len(holder) + 1
        if not 0 <= index <= len(holder):
            raise PatchError(
                f"add operation does not apply: Unable to access invalid index: {key}: invalid index referenced"
            )
        holder.insert(index, value)
    else:
        holder[key] = value
