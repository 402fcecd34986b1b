"""Captures a snapshot of a live cluster. Only list requests are sent, with the user's permissions.

A kind that the user may not list in the whole cluster is read in the namespace of the kubeconfig's context, if that is
permitted. `Snapshot.unread` contains what cannot be read; kinds whose CRD is not installed are empty.
"""

from __future__ import annotations

from typing import Any

import yaml

from volcano_py.api import core, kinds
from volcano_py.api.kinds import CONFIGMAP, RESERVATION, ResourceType
from volcano_py.api.meta import parse_time
from volcano_py.kube import wire
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, Forbidden, Gone, NotFound
from volcano_py.kube.served import served
from volcano_py.scheduler.cache.kinds import TABLE
from volcano_py.scheduler.framework.config import ConfigurationError, load, read_yaml
from volcano_py.scheduler.plugins.advance_reservation import AdvanceReservation
from volcano_py.scheduler.plugins.deviceshare.chip_reports import is_report
from volcano_py.scheduler.recording.private import without_private, without_secrets
from volcano_py.scheduler.remote.chip_report_maps import required_by, source
from volcano_py.scheduler.remote.device_config_map import config_map_of
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.snapshot import NAMESPACE, OBJECT, Snapshot, Unread

CONFIG_MAP = "volcano-system/volcano-scheduler-configmap/volcano-scheduler.conf"
"""The ConfigMap of Volcano's chart with the configuration: namespace, name and key."""


async def capture(
    client: Client, now: float, *, scheduler_names: tuple[str, ...] = ("volcano",), config_map: str = CONFIG_MAP
) -> Snapshot:
    """Read a cluster. `now`: seconds since the epoch; if objects of the API server are newer, their time is used.

    Raises KubeError when the server cannot be reached, or does not authenticate the user (401).
    """
    unread: list[Unread] = []
    objects: dict[str, list[Any]] = {}
    for entry in TABLE:
        rt = entry.rt
        if entry.versions:
            rt = await _served(client, entry.versions) or rt
        found = await _all(client, rt, entry.optional, unread)
        if found:
            kept = (without_private(obj) for obj in found)
            objects[entry.kind] = [kinds.in_version(obj, rt) for obj in kept] if entry.versions else list(kept)
    text = await _configuration(client, config_map, unread)
    if _names(text, AdvanceReservation.name):
        found = await _all(client, RESERVATION, True, unread)
        if found:
            objects[RESERVATION.kind] = [without_private(obj) for obj in found]
    config_maps = await _device_config_maps(client, text, unread)
    if config_maps:
        objects = {CONFIGMAP.kind: [without_private(found) for found in config_maps], **objects}
    stamps = [obj.metadata.creation_timestamp for found in objects.values() for obj in found]
    newest = max((parse_time(stamp) for stamp in stamps if stamp), default=now)
    return Snapshot(max(now, newest), objects, text, scheduler_names, unread=tuple(unread))


def resource_names() -> dict[str, str]:
    """The kinds of a snapshot, by their names in `Snapshot.unread`, as kubectl names resources."""
    of_table = {_name(e.rt): f"{e.rt.plural}.{e.rt.group}" if e.rt.group else e.rt.plural for e in TABLE}
    return of_table | {_name(RESERVATION): f"{RESERVATION.plural}.{RESERVATION.group}"}


async def _served(client: Client, versions: tuple[ResourceType, ...]) -> ResourceType | None:
    """The version that is served; None if that cannot be read, for which the list then states the reason."""
    try:
        return await served(client, versions)
    except ApiError as error:
        if error.status == 401:
            raise
        return None


async def _all(client: Client, rt: ResourceType, optional: bool, unread: list[Unread]) -> list[Any]:
    """The objects of one kind, in all namespaces or in the user's namespace."""
    try:
        return await _list(client, rt, None, unread)
    except NotFound as error:
        if not optional:
            unread.append(Unread(_name(rt), f"{error.message or error}"))
    except Forbidden as error:
        if rt.namespaced and client.namespace:
            try:
                found = await _list(client, rt, client.namespace, unread)
            except ApiError:
                pass
            else:
                why = f"only those of namespace {client.namespace}; others are forbidden"
                unread.append(Unread(_name(rt), why, NAMESPACE, True))
                return found
        unread.append(Unread(_name(rt), str(error), forbidden=True))
    except ApiError as error:
        if error.status == 401:
            raise
        unread.append(Unread(_name(rt), str(error)))
    return []


async def _list(client: Client, rt: ResourceType, namespace: str | None, unread: list[Unread]) -> list[Any]:
    """List page by page; if the continue token expires, list again in one response."""
    found: list[Any] = []
    bad: list[str] = []
    type_ = kinds.STRUCTS[rt]

    async def take(body: bytes) -> None:
        page, failed = await wire.read_list_lenient(body, type_)
        found.extend(page)
        bad.extend(f"{u.namespace}/{u.name}" if u.namespace else u.name for u in failed)

    try:
        async for body in client.raw_pages(rt, namespace):
            await take(body)
    except Gone:
        found.clear()
        bad.clear()
        await take(await client.raw("GET", rt.path(namespace)))
    for name in bad:
        unread.append(Unread(_name(rt), f"{name} cannot be decoded and is left out", OBJECT))
    return [core.detach(obj) for obj in found] if rt.kind == "Pod" else found


async def _configuration(client: Client, config_map: str, unread: list[Unread]) -> str:
    """The scheduler's configuration without its secrets; empty if it cannot be read."""
    namespace, name, key = config_map.split("/")
    try:
        found: core.ConfigMap = await client.get(CONFIGMAP, name, namespace, type=core.ConfigMap)
        text = (found.data or {})[key]
        document = read_yaml(text)
    except NotFound:
        return ""
    except (ApiError, KeyError, ConfigurationError) as error:
        why = f"key {key} is missing" if isinstance(error, KeyError) else str(error)
        why = "no permission to read it" if isinstance(error, Forbidden) else why
        unread.append(Unread("configuration", f"ConfigMap {namespace}/{name}: {why}; the built-in one counts"))
        return ""
    public = without_secrets(document)
    return text if public == document else yaml.safe_dump(public, sort_keys=False)


def _names(text: str, plugin: str) -> bool:
    """Whether a configuration has a plugin."""
    try:
        configuration = load(text, REGISTRY.actions) if text else None
    except ConfigurationError:
        return False
    tiers = configuration.tiers if configuration is not None else ()
    return any(option.name == plugin for tier in tiers for option in tier)


async def _device_config_maps(client: Client, text: str, unread: list[Unread]) -> list[core.ConfigMap]:
    """The ConfigMaps that the plugin deviceshare requires, if it is configured."""
    try:
        configuration = load(text, REGISTRY.actions) if text else None
    except ConfigurationError:
        return []
    key = None if configuration is None else config_map_of(configuration)
    if configuration is None or key is None:
        return []
    found: list[core.ConfigMap] = []
    try:
        found.append(await client.get(CONFIGMAP, key[1], key[0], type=core.ConfigMap))
    except NotFound:
        pass
    except ApiError as error:
        unread.append(Unread("ConfigMap", str(error)))
    reports = required_by(configuration)
    if reports is not None:
        selector, namespace = source(reports)
        try:
            async for body in client.raw_pages(CONFIGMAP, namespace, selector):
                page, _ = await wire.read_list_lenient(body, core.ConfigMap)
                found += [config_map for config_map in page if is_report(config_map, reports)]
        except ApiError as error:
            unread.append(Unread("ConfigMap", f"reports of MindCluster: {error}"))
    return found


def _name(rt: ResourceType) -> str:
    """A kind for messages; with its group if several groups have a kind of this name."""
    several = sum(entry.rt.kind == rt.kind for entry in TABLE) > 1
    return f"{rt.kind}.{rt.group}" if several else rt.kind
