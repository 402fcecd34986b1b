"""The facts that `vcctl explain` reads: a snapshot, the object itself, its Events, and the scheduler's Lease.

All reads use the user's permissions. A forbidden read is a note in the answer, not an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from volcano_py.api import names
from volcano_py.api.kinds import (
    COMPOSITE_PODGROUP,
    EVENT,
    JOB,
    NATIVE_PODGROUP,
    NATIVE_PODGROUPS,
    POD,
    PODGROUP,
    QUEUE,
    ResourceType,
)
from volcano_py.api.meta import parse_time
from volcano_py.kube.errors import ApiError, Forbidden, NotFound
from volcano_py.kube.remedies import grant_list
from volcano_py.kube.served import served
from volcano_py.scheduler.explain.table import SCHEDULER_NOT_LEADING, SCHEDULER_NOT_RUNNING
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE, NATIVE_KINDS

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.simulate.snapshot import Snapshot, Unread

Manifest = dict[str, Any]
KINDS: dict[str, ResourceType] = {
    "job": JOB,
    "podgroup": PODGROUP,
    "pod": POD,
    "queue": QUEUE,
    NATIVE: NATIVE_PODGROUP,
    COMPOSITE: COMPOSITE_PODGROUP,
}
LEASE = "volcano-system/volcano"
"""Default Lease of the scheduler: namespace and name."""
SANDBOX = "volcano-py-sandbox"
"""The gitCommit in the version of the sandbox's API server."""
CREATION_SECONDS, _POLL = 2.0, 0.1
"""Seconds for which the PodGroup of a new Job may be missing, and between two reads of it."""
_LATE = 2.0
"""A Lease that was not renewed for this many lease durations has no running holder."""


class Missing(Exception):
    """The object does not exist; the message is printed."""


@dataclass
class Facts:
    """Everything that was read. `group`: the key of the PodGroup of a job, podgroup or pod; empty if there is none."""

    kind: str
    name: str
    namespace: str
    subject: Manifest
    snapshot: Snapshot
    group: str = ""
    group_kind: str = PODGROUP.kind
    """The kind of `group` in the model: a PodGroup of Volcano or a group of scheduling.k8s.io."""
    job: Manifest | None = None
    """The Job that the PodGroup belongs to."""
    events: list[Manifest] = field(default_factory=list)
    scheduler: Cause | None = None
    """Why no scheduler is active, or None."""
    unknown_scheduler: str = ""
    """Why it is unknown whether a scheduler is active; matters only for objects that wait."""
    pods: list[Manifest] = field(default_factory=list)
    """The pods of the object, read for users that may not list all pods or PodGroups."""
    notes: list[str] = field(default_factory=list)
    """Reads that failed."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


async def read_facts(
    client: Client, kind: str, name: str, namespace: str, now: float, scheduler: str, lease: str
) -> Facts:
    """Read the facts about one object. Raises Missing, and KubeError if the object itself cannot be read."""
    from volcano_py.simulate.capture import capture
    from volcano_py.simulate.snapshot import ALL, summary

    rt = KINDS[kind]
    if kind == NATIVE:
        rt = await served(client, NATIVE_PODGROUPS) or rt
    namespace = namespace if rt.namespaced else ""
    try:
        subject: Manifest = await client.get(rt, name, namespace or None)
    except NotFound:
        if kind == "podgroup":
            with contextlib.suppress(Missing):
                return await read_facts(client, NATIVE, name, namespace, now, scheduler, lease)
        if kind in NATIVE_KINDS:
            listing = f"kubectl get {rt.plural}.{rt.group} -n {namespace}"
            raise Missing(
                f"{rt.kind} {name} of {rt.group} does not exist in namespace {namespace}, or was just deleted; "
                f"list existing ones with `{listing}`"
            ) from None
        where = f" in namespace {namespace}" if namespace else ""
        also = f"`vcctl {kind} list{f' -n {namespace}' if namespace else ''}`"
        raise Missing(
            f"{rt.kind} {name} does not exist{where}, or was just deleted; list existing ones with {also}"
        ) from None
    if kind == "job":
        await _podgroup_of_new(client, subject, namespace, now)
    snapshot = await capture(client, now, scheduler_names=(scheduler,))
    facts = Facts(kind, name, namespace, subject, snapshot)
    facts.notes += summary(snapshot.unread)
    denied = [u for u in snapshot.unread if u.forbidden]
    if denied:
        why = next((u.why for u in denied if u.scope == ALL), "")
        facts.notes.append(f"an administrator grants the rest with: {grant_list(why, resources(denied))}")
        facts.pods = await _own_pods(client, facts)
    facts.group_kind, facts.group = _group(facts)
    for about in sorted({(rt.kind, name), (PODGROUP.kind, facts.group.partition("/")[2])}):
        facts.events += await _events(client, facts, *about)
    facts.job = subject if kind == "job" else await _owner(client, facts)
    facts.scheduler = await _scheduler(client, facts, lease, now)
    return facts


async def _podgroup_of_new(client: Client, job: Manifest, namespace: str, now: float) -> None:
    """Wait until the controllers have created the PodGroup of a Job that was created just now."""
    metadata = job["metadata"]
    created = metadata.get("creationTimestamp")
    finished = ((job.get("status") or {}).get("state") or {}).get("phase") not in (None, "", "Pending")
    if finished or not created or not -CREATION_SECONDS < now - parse_time(str(created)) < 2 * CREATION_SECONDS:
        return
    for _ in range(int(CREATION_SECONDS / _POLL)):
        try:
            await client.get(PODGROUP, f"{metadata['name']}-{metadata.get('uid', '')}", namespace)
        except NotFound:
            await asyncio.sleep(_POLL)
        except ApiError:
            return
        else:
            return


def resources(unread: Iterable[Unread]) -> list[str]:
    """The kinds as kubectl names them: `podgroups.scheduling.volcano.sh`."""
    from volcano_py.simulate.capture import resource_names

    names_of = resource_names()
    return sorted({names_of[u.kind] for u in unread if u.kind in names_of})


async def _own_pods(client: Client, facts: Facts) -> list[Manifest]:
    """The pods of a Job or PodGroup in its namespace; empty without permission."""
    if facts.kind == "pod":
        return [facts.subject]
    if facts.kind not in ("job", "podgroup", NATIVE):
        return []
    try:
        found = (await client.list(POD, facts.namespace)).items
    except ApiError:
        return []
    if facts.kind == NATIVE:
        return [p for p in found if (p["spec"].get("schedulingGroup") or {}).get("podGroupName") == facts.name]
    key, value = (names.JOB_NAME, facts.name) if facts.kind == "job" else (names.GROUP_NAME, facts.name)
    return [pod for pod in found if (pod["metadata"].get("annotations") or {}).get(key) == value]


def _group(facts: Facts) -> tuple[str, str]:
    """Kind and key of the group."""
    metadata = facts.subject["metadata"]
    if facts.kind in NATIVE_KINDS:
        return facts.kind, facts.key
    found = ""
    if facts.kind == "podgroup":
        found = facts.name
    elif facts.kind == "job":
        found = f"{facts.name}-{metadata.get('uid', '')}"
    elif facts.kind == "pod":
        native = (facts.subject.get("spec") or {}).get("schedulingGroup") or {}
        if native.get("podGroupName"):
            return NATIVE, f"{facts.namespace}/{native['podGroupName']}"
        found = (metadata.get("annotations") or {}).get(names.GROUP_NAME) or ""
    return PODGROUP.kind, f"{facts.namespace}/{found}" if found else ""


async def _owner(client: Client, facts: Facts) -> Manifest | None:
    """The Job that owns a PodGroup, if it exists and may be read."""
    owners = facts.subject["metadata"].get("ownerReferences") or () if facts.kind == "podgroup" else ()
    for owner in owners:
        if owner.get("kind") == JOB.kind and owner.get("apiVersion") == JOB.api_version:
            try:
                found: Manifest = await client.get(JOB, owner["name"], facts.namespace)
            except ApiError as error:
                facts.notes.append(f"Job {owner['name']}: {error}")
            else:
                return found
    return None


async def _events(client: Client, facts: Facts, kind: str, name: str) -> list[Manifest]:
    if not name:
        return []
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        found = await client.list(EVENT, facts.namespace or "default", field_selector=selector)
    except Forbidden:
        note = f"no permission to list Events in namespace {facts.namespace or 'default'}"
        facts.notes += [note] if note not in facts.notes else []
        return []
    except ApiError as error:
        facts.notes.append(f"Events of {kind} {name}: {error}")
        return []
    return list(found.items)


async def _scheduler(client: Client, facts: Facts, lease: str, now: float) -> Cause | None:
    """Why no scheduler is active, according to the Lease."""
    namespace, _, name = lease.partition("/")
    try:
        body = await client.raw("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    except NotFound:
        if await _is_sandbox(client):
            return None  # its scheduler is the only one, and needs no Lease
        facts.unknown_scheduler = (
            f"Lease {lease} does not exist, so this command cannot check that a scheduler runs; if it uses another "
            "Lease, set --lease"
        )
        return None
    except Forbidden:
        facts.unknown_scheduler = f"no permission to read Lease {lease}; the state of the scheduler is unknown"
        return None
    except ApiError as error:
        facts.unknown_scheduler = f"Lease {lease}: {error}; the state of the scheduler is unknown"
        return None
    return lease_cause(lease, (msgspec.json.decode(body) or {}).get("spec") or {}, now)


async def _is_sandbox(client: Client) -> bool:
    try:
        version = msgspec.json.decode(await client.raw("GET", "/version"))
    except (ApiError, msgspec.DecodeError):
        return False
    return isinstance(version, dict) and version.get("gitCommit") == SANDBOX


def lease_cause(lease: str, spec: Manifest, now: float) -> Cause | None:
    """Why no scheduler is active, according to the spec of its Lease; None if one is."""
    if not spec.get("holderIdentity"):
        return SCHEDULER_NOT_LEADING.because(lease=lease)
    renewed = spec.get("renewTime") or spec.get("acquireTime")
    late = now - parse_time(str(renewed)) if renewed else 0.0
    if late > _LATE * float(spec.get("leaseDurationSeconds") or 15):
        return SCHEDULER_NOT_RUNNING.because(lease=lease, holder=str(spec["holderIdentity"]), seconds=int(late))
    return None
