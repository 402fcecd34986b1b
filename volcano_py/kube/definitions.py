"""Checks whether the cluster's CRDs contain all fields that this program uses.

The API server drops unknown fields without an error, and a status update without the subresource is not
found. Each component therefore compares its structs with discovery and OpenAPI, which every authenticated user may
read. A missing CRD is reported by the informer of its kind.
"""

from __future__ import annotations

import asyncio
import logging
import types
import typing
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from volcano_py.api import meta
from volcano_py.api.kinds import STATUS_SUBRESOURCE, STRUCTS, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound
from volcano_py.kube.remedies import UPDATE_CRDS

log = logging.getLogger(__name__)

LOOK = 30.0
"""Seconds between two checks while a CRD is missing or older."""
LONG_LOOK = 900.0
"""Seconds between two checks otherwise: a rollback may restore older CRDs."""
MOST_NAMED = 6
"""Maximum number of fields in one message."""

Schema = Mapping[str, Any]


def lacking(rt: ResourceType, served: Collection[str], schema: Schema) -> list[str]:
    """The parts that the programs use and the CRD of a kind lacks: fields as paths, and the status subresource.

    `served` are the names in the discovery document of the version, `schema` is the kind's in OpenAPI.
    """
    absent = list(_absent_fields(STRUCTS[rt], schema, ""))
    if rt in STATUS_SUBRESOURCE and f"{rt.plural}/status" not in served:
        absent.append("the subresource status")
    return absent


def _absent_fields(struct: type[msgspec.Struct], schema: Schema, path: str) -> Iterator[str]:
    properties = schema.get("properties")
    if not properties:
        return  # any field is stored, or the schema is a $ref
    for field in _fields(struct):
        name = field.encode_name
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        below = f"{path}.{name}".lstrip(".")
        if name not in properties:
            yield below
            continue
        inner = _struct_in(field.type)
        if inner is not None and inner.__module__ != meta.__name__:  # structs of `meta` combine several kinds
            yield from _absent_fields(inner, _values_of(properties[name]), below)


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a struct; msgspec evaluates their types for each call."""
    return msgspec.structs.fields(struct)


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct of a field: its type, or that of its items or values."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) in (list, dict, typing.Union):
        return next(filter(None, map(_struct_in, typing.get_args(annotation))), None)
    return None


def _values_of(schema: Schema) -> Schema:
    """The schema of an array's items or a map's values, else the schema itself."""
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            return _values_of(schema[key])
    return schema


async def follow(client: Client, kinds: Iterable[ResourceType]) -> None:
    """Log the missing parts of the CRDs of these kinds, and their updates, until cancelled."""
    wanted = [rt for rt in dict.fromkeys(kinds) if rt in STRUCTS and rt.group.endswith("volcano.sh")]
    reported: dict[ResourceType, list[str]] = {}
    while True:
        complete = True
        try:
            async for rt, absent in _look(client, wanted):
                complete = complete and absent == []
                if absent is not None and absent != reported.get(rt, []):
                    _report(rt, absent)
                    reported[rt] = absent
        except Exception as error:  # an unexpected response must not end the process
            complete = False
            log.debug("the CRDs cannot be compared: %r", error)
        await asyncio.sleep(LONG_LOOK if complete else LOOK)


def _report(rt: ResourceType, absent: list[str]) -> None:
    name = f"{rt.plural}.{rt.group}"
    if not absent:
        log.info("CRD %s is up to date now", name)
        return
    more = f" and {len(absent) - MOST_NAMED} more" if len(absent) > MOST_NAMED else ""
    text = ", ".join(absent[:MOST_NAMED]) + more
    log.warning("CRD %s is older than this program: it does not have %s; update it: %s", name, text, UPDATE_CRDS)


async def _look(client: Client, kinds: list[ResourceType]) -> AsyncIterator[tuple[ResourceType, list[str] | None]]:
    """Each kind with the missing parts of its CRD; None if there is no CRD. Raises KubeError."""
    for api_version in dict.fromkeys(rt.api_version for rt in kinds):
        served: list[str] = []
        schemas: Mapping[str, Schema] = {}
        try:
            found = msgspec.json.decode(await client.raw("GET", f"/apis/{api_version}"))
            served = [row["name"] for row in found.get("resources") or ()]
            document = msgspec.json.decode(await client.raw("GET", f"/openapi/v3/apis/{api_version}"))
            schemas = (document.get("components") or {}).get("schemas") or {}
        except NotFound:
            pass
        for rt in kinds:
            if rt.api_version == api_version:
                schema = _schema_of(rt, schemas)
                known = rt.plural in served and schema is not None
                yield rt, lacking(rt, served, schema) if known and schema is not None else None


def _schema_of(rt: ResourceType, schemas: Mapping[str, Schema]) -> Schema | None:
    wanted = {"group": rt.group, "version": rt.version, "kind": rt.kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return schema
    return None


async def missing_parts(client: Client, kinds: Iterable[ResourceType]) -> dict[str, list[str]]:
    """The missing parts of each CRD that is older than this program, by its name. Raises KubeError."""
    wanted = [rt for rt in kinds if rt in STRUCTS]
    return {f"{rt.plural}.{rt.group}": absent async for rt, absent in _look(client, wanted) if absent}
