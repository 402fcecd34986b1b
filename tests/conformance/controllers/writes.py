"""Writes as data that can be compared: those that were recorded, and those that our instructions would make.

What has no meaning for the cluster is left out: in what order concurrent writes come, whether a mark is set by a merge
or a JSON patch, preconditions that we add, random parts of names, empty values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.controllers.instructions import Create, Delete, Emit, Ensure, Instruction, Patch, Together, UpdateStatus

Data = dict[str, Any]
_RANDOM = re.compile(r"(?<=-)[0-9a-z]{12}(?=\")")
_TIMES = ("lastTransitionTime", "creationTimestamp", "runningDuration")


def plain(value: Any) -> Any:
    """Without empty values, which data may or may not write."""
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := plain(v)) not in ({}, [], None, "", 0, False)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def same(made: Any, wanted: Any) -> str:
    """Where two values differ, as JSON; nothing where they do not."""
    one, other = _text(made), _text(wanted)
    return "" if one == other else f"made {one[:400]}, expected {other[:400]}"


def _text(value: Any) -> str:
    return _RANDOM.sub("*", json.dumps(plain(value), sort_keys=True))


def job_of(manifest: Data) -> Job:
    """A recorded job; what is not recorded is zero, also where the API server would have filled in a default."""
    job = from_manifest(Job, manifest)
    spec = manifest.get("spec") or {}
    job.spec.queue = spec.get("queue", "")
    job.spec.max_retry = spec.get("maxRetry", 0)
    return job


def untimed(status: Data) -> Data:
    """A status without the times in it, which are those of the recording."""
    kept = {k: v for k, v in status.items() if k not in _TIMES}
    if "state" in kept:
        kept["state"] = {k: v for k, v in kept["state"].items() if k not in _TIMES}
    if "conditions" in kept:
        kept["conditions"] = [{k: v for k, v in c.items() if k not in _TIMES} for c in kept["conditions"] or ()]
    return kept


def ours(instructions: Iterable[Instruction]) -> list[Data]:
    """What the executor would send."""
    found: list[Data] = []
    for one in instructions:
        match one:
            case Together(instructions=inner):
                found += ours(inner)
            case Create(rt=rt, obj=obj) | Ensure(rt=rt, obj=obj):
                complete = getattr(one, "complete", None)
                whole = complete(obj) if complete else obj
                found.append(_write("create", rt.plural, obj["metadata"]["name"], object=whole))
            case UpdateStatus(rt=rt, name=name, status=status):
                found.append(_write("status", rt.plural, name, object=status))
            case Patch(rt=rt, name=name, body=body):
                found.append(_write("patch", rt.plural, name, object=_patched(body)))
            case Delete(rt=rt, name=name):
                found.append(_write("delete", rt.plural, name))
            case Emit():
                pass
    return found


def recorded(writes: Iterable[Data]) -> list[Data]:
    """The recorded writes in the same form."""
    found = []
    for write in writes:
        verb, plural = write["verb"], write["resource"]
        obj = write.get("object")
        name = write.get("name") or (obj or {}).get("metadata", {}).get("name", "")
        if verb == "update" and write.get("subresource") == "status":
            found.append(_write("status", plural, name, object=(obj or {}).get("status") or {}))
        elif verb == "patch":
            found.append(_write("patch", plural, name, object=_patched(write["patch"])))
        else:
            found.append(_write(verb, plural, name, object=obj) if obj else _write(verb, plural, name))
    return found


def _write(verb: str, resource: str, name: str, **rest: Any) -> Data:
    return {"verb": verb, "resource": resource, "name": name, **rest}


def _patched(body: Any) -> Any:
    """What a patch sets, as a nested object; preconditions are no part of it."""
    if isinstance(body, dict):
        metadata = {k: v for k, v in (body.get("metadata") or {}).items() if k not in ("uid", "name")}
        rest = {k: v for k, v in body.items() if k not in ("metadata", "apiVersion", "kind")}
        return {"metadata": metadata} | rest if metadata else rest
    made: Data = {}
    for operation in body:
        if operation["op"] == "test":
            continue
        *way, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
        place = made
        for part in way:
            place = place.setdefault(part, {})
        place[last] = operation["value"]
    return made


def differing(made: list[Data], wanted: list[Data]) -> tuple[list[Data], list[Data]]:
    """(only ours, only theirs), without regard to order."""
    left = {_text(w): w for w in wanted}
    right = {_text(w): w for w in made}
    return [w for t, w in right.items() if t not in left], [w for t, w in left.items() if t not in right]
