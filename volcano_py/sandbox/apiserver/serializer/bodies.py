"""Request bodies: JSON, YAML or protobuf bytes to a plain value, and their duplicate keys.

Kubernetes: runtime/serializer/json.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import orjson
import yaml

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError, bad_request
from volcano_py.sandbox.apiserver.serializer import protobuf

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MEDIA_TYPES = f"{JSON}, {YAML}, {PROTOBUF}"


MOST_LEVELS = 200
"""The maximum nesting of a body: stored objects must fit into the lists, tables and reviews that contain them."""
MOST_VALUES = 2_000_000
"""The maximum number of values; a body within the limits exceeds it only with YAML aliases."""


class ParseError(ValueError):
    """The bytes are not a document of their media type."""


def media_type(content_type: str) -> str:
    """The bare media type; no header means JSON."""
    return content_type.split(";", 1)[0].strip().lower() or JSON


def parse(body: bytes, content_type: str, duplicates: list[str] | None) -> Any:
    """The value of a body; `duplicates` (if given) receives the paths of repeated keys. Raises ParseError."""
    kind = media_type(content_type)
    if kind == JSON:
        return parse_json(body, duplicates)
    if kind == YAML:
        return parse_yaml(body, duplicates)
    if kind == PROTOBUF:
        try:
            return protobuf.decode_envelope(body)
        except protobuf.ProtobufError as error:
            raise ParseError(str(error)) from None
    raise unsupported_media_type()


def unsupported_media_type(accepted: str = MEDIA_TYPES) -> StatusError:
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", text)


def parse_json(body: bytes, duplicates: list[str] | None = None) -> Any:
    """A JSON document. Large integers keep their digits; duplicate keys: the last one counts."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ParseError(_go_json_error(body, error)) from None
    if body.count(b"{") + body.count(b"[") > MOST_LEVELS:
        _measure(value, 1, {})
    # the fast test for repeated keys: with them, the encoded value is shorter than the input
    if duplicates is not None and len(orjson.dumps(value)) != len(body):
        _find_duplicates(body, duplicates)
    return value


def _measure(value: Any, level: int, known: dict[int, int]) -> int:
    """The number of values in a document when it is encoded; ParseError when it is too deep or too large.

    What YAML refers to more than once is counted each time, but processed once.
    """
    if not isinstance(value, dict | list):
        return 1
    if level > MOST_LEVELS:
        raise ParseError("exceeded max depth")
    count = known.get(id(value))
    if count is None:
        parts = value.values() if isinstance(value, dict) else value
        count = known[id(value)] = 1 + sum(_measure(part, level + 1, known) for part in parts)
        if count > MOST_VALUES:
            raise ParseError("document contains excessive aliasing")
    return count


def _go_json_error(body: bytes, error: orjson.JSONDecodeError) -> str:
    at = error.pos
    text = body.decode("utf-8", "replace")
    if at >= len(text.rstrip()):
        return "unexpected end of JSON input"
    return f"invalid character {_quoted(text[at])} looking for beginning of value"


def _quoted(char: str) -> str:
    return repr(char) if char != "'" else "'\\''"


class _Pairs(list):  # type: ignore[type-arg]
    """An object as a list of its pairs, including duplicates."""


def _find_duplicates(body: bytes, out: list[str]) -> None:
    try:
        tree = json.loads(body, object_pairs_hook=_Pairs)
    except ValueError:
        return
    stack: list[tuple[Any, str]] = [(tree, "")]
    found: list[str] = []
    while stack:
        value, path = stack.pop()
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, item in value:
                at = f"{path}.{key}" if path else key
                if key in seen and at not in found:
                    found.append(at)
                seen.add(key)
                stack.append((item, at))
        elif isinstance(value, list):
            stack.extend((item, f"{path}[{index}]") for index, item in enumerate(value))
    out.extend(found)


class _Loader(yaml.SafeLoader):
    """YAML as sigs.k8s.io/yaml reads it: timestamps stay strings, y and n are booleans."""

    duplicates: list[str]


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_BOOLEANS = __import__("re").compile(
    r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)
for _first in "yYnN":
    _rows = [row for row in _Loader.yaml_implicit_resolvers.get(_first, []) if not row[0].endswith(":bool")]
    _Loader.yaml_implicit_resolvers[_first] = [("tag:yaml.org,2002:bool", _BOOLEANS), *_rows]
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def _mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            line = key_node.start_mark.line + 1
            loader.duplicates.append(f'line {line}: key "{key}" already set in map')
        seen.add(key)
    pairs = yaml.SafeLoader.construct_mapping(loader, node, deep=True)
    return {_key(key): value for key, value in pairs.items()}


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def parse_yaml(body: bytes, duplicates: list[str] | None = None) -> Any:
    """Parse a YAML document (JSON is also YAML, and parsed as JSON if it is valid); raises ParseError."""
    if body.lstrip()[:1] == b"{":
        with contextlib.suppress(ParseError):
            repeated: list[str] = []
            value = parse_json(body, repeated)
            if not repeated:
                return value
    try:
        loader = _Loader(body)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParseError(f"yaml: invalid leading UTF-8 octet: {error}") from None
    loader.duplicates = []
    try:
        value = loader.get_single_data()
        _measure(value, 1, {})
        orjson.dumps(value)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise ParseError(f"yaml: line {line}: {getattr(error, 'problem', None) or error}") from None
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeDecodeError and ParseError are ValueErrors
        raise ParseError(f"yaml: {error}") from None
    finally:
        loader.dispose()
    if duplicates is not None:
        duplicates.extend(loader.duplicates)
    return value


def read_object(body: bytes, content_type: str, kind: str, duplicates: list[str] | None) -> dict[str, Any]:
    """The object of a create or update request; raises the server's 400 if it is not an object."""
    try:
        value = parse(body, content_type, duplicates)
    except ParseError as error:
        wrap = "couldn't get version/kind; json parse error: " if media_type(content_type) == JSON else ""
        shown = body[:64].hex() if body and media_type(content_type) != JSON else body[:64].decode("utf-8", "replace")
        text = f"the object provided is unrecognized (must be of type {kind}): {wrap}{error} ({shown or '<empty>'})"
        raise bad_request(text) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        what = "array" if isinstance(value, list) else "string" if isinstance(value, str) else "number"
        text = (
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse "
            f"error: json: cannot unmarshal {what} into Go value of type struct ({body[:64].hex()})"
        )
        raise bad_request(text)
    return value
