"""Job plugins: their changes of a pod, and the objects that they create and delete in addition to the pods."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.outcome import FAIL, PASS, UNBUILDABLE, Outcome
from volcano_py.api import names
from volcano_py.api.batch import Job, Task
from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.controllers.instructions import Delete, Ensure
from volcano_py.controllers.job.plugins import on_job_add, on_job_delete, registry
from volcano_py.controllers.job.plugins.hcclrank import HcclRank, _rank_variable
from volcano_py.controllers.job.plugins.ssh import Ssh

Data = dict[str, Any]
AREA = "job-plugins"


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All cases of job plugins; the file's name is the plugin's."""
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text()):
            label = f"{path.stem}: {case['id']} {case['operation']}"
            ask = _OPERATIONS.get(case["operation"])
            if ask is None:
                yield Outcome(AREA, label, UNBUILDABLE, f"{case['operation']} has no counterpart: the hooks cover it")
                continue
            wrong = ask(path.stem, case)
            kind = UNBUILDABLE if wrong == _NO_INDEX else FAIL if wrong else PASS
            yield Outcome(AREA, label, kind, wrong)


def _arguments(case: Data) -> list[str]:
    """The raw arguments; if only the parsed ones are recorded, arguments with these values."""
    for key, value in case["plugin"].items():
        if key.endswith("rguments"):
            return list(value or ())
    roles = {role: case["plugin"].get(f"{role}Name") for role in ("master", "worker")}
    return [f"--{role}={name}" for role, name in roles.items() if name]


def _job(case: Data) -> Job:
    made: Job = from_manifest(Job, case["input"].get("job") or {})
    return made


def _pod_create(plugin: str, case: Data) -> str:
    job, pod = _job(case), copy.deepcopy(case["input"]["pod"])
    wanted = (case.get("after") or {}).get("pod", case["input"]["pod"])
    registry()[plugin](_arguments(case)).on_pod_create(pod, job, _task(job, pod), _index(pod) or 0)
    got, expected = _canonical(pod), _canonical(wanted)
    if got != expected and (_index(pod) is None or not case["input"].get("job")):
        return _NO_INDEX
    return "" if got == expected else f"made {got}, expected {expected}"


def _task(job: Job, pod: Data) -> Task:
    role = (pod["metadata"].get("annotations") or {}).get(names.TASK_SPEC, "")
    named = pod["metadata"]["name"].removeprefix(f"{job.metadata.name}-").rpartition("-")[0]
    return next((t for t in job.spec.tasks or () if t.name in (role, named)), Task(name=role or named))


_NO_INDEX = "the pod has no index, or no job; here pods are created from a job, with their index"


def _index(pod: Data) -> int | None:
    meta = pod["metadata"]
    number = (meta.get("labels") or {}).get("volcano.sh/task-index") or meta["name"].rpartition("-")[2]
    return int(number) if number.isdigit() else None


_SCRIPT_FACTS = re.compile(r"[a-z][a-z0-9.-]+-0\.[a-z0-9.-]+|\b\d{3,}\b")


def _canonical(value: Any) -> Any:
    """Without empty values; texts that are JSON as their values."""
    if isinstance(value, dict):
        kept = {k: _canonical(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in (None, {}, [], "")}
    if isinstance(value, list):
        return [_canonical(v) for v in value]
    if isinstance(value, str) and value.startswith("{"):
        return json.loads(value)
    if isinstance(value, str) and "\n" in value and "sleep" in value:
        return sorted({*_SCRIPT_FACTS.findall(value)})  # only the facts of a script: what it waits for, and how long
    return value


def _job_hook(plugin: str, case: Data, deletes: bool) -> str:
    """The changes of other objects and of the status when a job starts or ends."""
    job = _job(case)
    job.spec.plugins = {plugin: _arguments(case)}
    if plugin == "hcclrank" and not deletes:
        registry()[plugin](_arguments(case))  # the recorded call is only the plugin's, which records nothing
        return ""
    noted = job.status.controlled_resources or {}
    first = deletes or f"plugin-{plugin}" not in noted
    instructions = (on_job_delete if deletes else on_job_add)(job, job.status) if first else []
    wanted = ((case.get("after") or {}).get("job") or case["input"]["job"]).get("status") or {}
    status = to_manifest(job).get("status") or {}
    if (status.get("controlledResources") or {}) != (wanted.get("controlledResources") or {}):
        return f"noted {status.get('controlledResources')}, expected {wanted.get('controlledResources')}"
    got = [_written(i) for i in instructions]
    expected = [_recorded(w) for w in case.get("writes") or () if w["verb"] not in ("get", "list")]
    return _compared(got, expected)


def _written(instruction: Any) -> Data:
    if isinstance(instruction, Delete):
        return {"verb": "delete", "resource": instruction.rt.plural, "name": instruction.name}
    assert isinstance(instruction, Ensure)
    manifest = instruction.complete(instruction.obj) if instruction.complete else instruction.obj
    body = {k: v for k, v in manifest.items() if k in ("data", "spec")}
    return {"verb": "create", "resource": instruction.rt.plural, "name": manifest["metadata"]["name"], "body": body}


def _recorded(write: Data) -> Data:
    found = {"verb": write["verb"], "resource": write["resource"], "name": write.get("name")}
    body = write.get("object") or write.get("body")
    if body is not None:
        found["name"] = body["metadata"]["name"]
        found["body"] = {k: v for k, v in body.items() if k in ("data", "spec")}
    return found


def _compared(got: list[Data], expected: list[Data]) -> str:
    def key(w: Data) -> tuple[str, str, str]:
        return (w["verb"], w["resource"], w["name"] or "")

    a, b = sorted(got, key=key), sorted(expected, key=key)
    if [key(w) for w in a] != [key(w) for w in b]:
        return f"wrote {[key(w) for w in a]}, expected {[key(w) for w in b]}"
    for mine, theirs in zip(a, b, strict=True):
        mine_, theirs_ = _body(mine), _body(theirs)
        if mine_ != theirs_:
            return f"{key(mine)}: wrote {mine_}, expected {theirs_}"
    return ""


def _body(write: Data) -> Any:
    """The written content; of keys that are generated again every time only their names."""
    body = _canonical(write.get("body"))
    if write["resource"] == "secrets" and body:
        data = body.get("data") or {}
        config = data.get("config", "")
        text = config["decoded"] if isinstance(config, dict) else base64.b64decode(config).decode()
        return {"keys": sorted(data), "config": text}
    return body


def _flags(plugin: str, case: Data) -> str:
    made = HcclRank(_arguments(case))
    wanted = case["after"]["state"]
    got = (made._master, made._worker)
    return "" if got == (wanted["masterName"], wanted["workerName"]) else f"read {got}, expected {wanted}"


def _variable(plugin: str, case: Data) -> str:
    got, wanted = _rank_variable(case["input"]["pod"]), case["output"]["r0"]
    return "" if got == wanted else f"read {got!r}, expected {wanted!r}"


def _port(plugin: str, case: Data) -> str:
    got, wanted = Ssh(_arguments(case))._port, case["after"]["state"]["sshPort"]
    return "" if got == wanted else f"port {got}, expected {wanted}"


def _ssh_config(plugin: str, case: Data) -> str:
    made = Ssh([f"--ssh-port={case['input']['port']}"])._config(_job(case))
    return "" if made == case["output"]["r0"] else f"wrote {made!r}, expected {case['output']['r0']!r}"


_OPERATIONS = {
    "addFlags": _flags,
    "getEnv": _variable,
    "validateSSHPort": _port,
    "generateSSHConfig": _ssh_config,
    "OnPodCreate": _pod_create,
    "OnJobAdd": lambda plugin, case: _job_hook(plugin, case, deletes=False),
    "OnJobDelete": lambda plugin, case: _job_hook(plugin, case, deletes=True),
}
