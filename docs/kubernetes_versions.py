"""docs/kubernetes-versions.md: what of each version of Kubernetes is supported, from its schemas and the code.

The schemas are those of the package kubernetes-validate, so that no network is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from tests.acceptance.versions import CASES, VERSIONS
from volcano_py.api.kinds import KUBERNETES, ResourceType
from volcano_py.kube.definitions import lacking
from volcano_py.sandbox.apiserver.apimachinery.features import GENERIC_WORKLOAD, OF_VERSION
from volcano_py.sandbox.apiserver.registry.builtin import GATED
from volcano_py.scheduler.cache.kinds import TABLE, Watched
from volcano_py.scheduler.profiles.release import release_of

Schema = dict[str, Any]
ROOT = Path(__file__).parents[1]
_GATE = re.compile(r"\b([A-Z]\w+) feature gate|feature gate ([A-Z]\w+)")


@cache
def tested() -> tuple[str, ...]:
    """The versions on which the workflow runs kind, oldest first, as far as there are schemas."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"]
    found = {tuple(map(int, tag[1:].split(".")[:2])) for tag in jobs["e2e-kind"]["strategy"]["matrix"]["kubernetes"]}
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


@cache
def document(version: str, name: str) -> Schema | None:
    """A file of the schemas of a version."""
    folder = resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}.0-local"
    file = folder / f"{name}.json"
    found: Schema | None = json.loads(file.read_text()) if file.is_file() else None
    return found


def schema_name(rt: ResourceType) -> str:
    """The file of a kind."""
    group = f"-{rt.group.partition('.')[0]}" if rt.group else ""
    return f"{rt.kind.lower()}{group}-{rt.version}"


@cache
def schema_of(version: str, rt: ResourceType) -> Schema | None:
    """The schema of a kind in a version of Kubernetes, without references; None if that version does not have it."""
    found = document(version, schema_name(rt))
    return _resolved(found, version, ()) if found is not None else None


def _resolved(schema: Any, version: str, above: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_resolved(each, version, above) for each in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name not in above:
        definitions = (document(version, "_definitions") or {})["$defs"]
        inner = _resolved(definitions[name], version, (*above, name))
        return {**inner, "description": f"{inner.get('description', '')} {schema.get('description', '')}"}
    return {key: _resolved(value, version, above) for key, value in schema.items()}


def read_kinds() -> Iterator[Watched]:
    """Kubernetes' own kinds that the scheduler watches."""
    return (entry for entry in TABLE if entry.rt in KUBERNETES)


def served_as(version: str, entry: Watched) -> ResourceType | None:
    """A kind in the version of its API that the scheduler uses with this version of Kubernetes."""
    return next((rt for rt in entry.versions or (entry.rt,) if schema_of(version, rt) is not None), None)


def absent(version: str, entry: Watched) -> set[str]:
    """The fields that the scheduler reads and this version of Kubernetes does not have."""
    rt = served_as(version, entry)
    schema = schema_of(version, rt) if rt is not None else None
    return set(lacking(rt, [f"{rt.plural}/status"], schema)) if rt is not None and schema is not None else set()


def gates_of(entry: Watched, path: str) -> list[str]:
    """The feature gates that the newest schema names for a field or for one above it."""
    rt = served_as(tested()[-1], entry)
    at = schema_of(tested()[-1], rt) if rt is not None else None
    found: list[str] = []
    for part in path.split("."):
        if at is None:
            break
        at = (at.get("properties") or {}).get(part)
        text = str((at or {}).get("description", ""))
        found += [a or b for a, b in _GATE.findall(text)]
        while at is not None and ("items" in at or isinstance(at.get("additionalProperties"), dict)):
            at = at.get("items") or at["additionalProperties"]
    if path == "spec.schedulingGroup":
        found.append(GENERIC_WORKLOAD)  # its description names no gate
    return list(dict.fromkeys(found))


def gates_of_kind(entry: Watched) -> str:
    """The feature gate of the API server for a kind that is not served by default."""
    tables = ((gate, rows) for of in GATED.values() for gate, table in of.items() for rows in table.values())
    found = [
        gate for gate, rows in tables if entry.rt.group == "scheduling.k8s.io" for r in rows if r.kind == entry.rt.kind
    ]
    return ", ".join(dict.fromkeys(found))


INTRODUCTION = """\
<!-- Generated by docs/kubernetes_versions.py from schemas and code: do not edit. -->
# Versions of Kubernetes

What the scheduler reads in each version of Kubernetes on which [the tests run](releases.md#support-window). A kind that
the cluster does not serve is reported in one log line; nothing else changes. When the cluster serves it later, it is
watched without a restart. A field that a version does not have is empty.
"""
KINDS = """\
## Kinds

The version of the API that is used; `-`: the kind is not served in a version that the scheduler reads. Without the gate
of the scheduler (`--feature-gates`) the kind is not watched. The gates of the API server are off by default, and their
versions are served with `--runtime-config` only; see [native gangs](native-gangs.md#versions).
"""
FIELDS = """\
## Fields

Fields that are read and that not all of these versions have. The gates are those that the API names for them.
"""
PROGRAMS = """\
## Profiles and the sandbox

[Profiles](profiles.md) decide as the kube-scheduler of the version of the cluster, or of `--kubernetes-version`; the
[sandbox](sandbox.md) serves what the version in its own `--kubernetes-version` does.
"""

ACCEPTANCE = """\
## Acceptance

Cases of the acceptance suite that run on a sandbox of each version, with the kinds that it serves by default; all
objects that are written there are checked against its schemas (`tests/acceptance/test_versions.py`). `-`: the version
has no such kind. The whole suite runs on the version of the [sandbox](sandbox.md), on kind, and with `make e2e-envtest`
on kube-apiserver.
"""


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def page() -> str:
    """The page."""
    versions = tested()
    kinds, fields, programs = [], [], []
    for entry in read_kinds():
        cells = [rt.version if (rt := served_as(v, entry)) is not None else "-" for v in versions]
        group = f" ({entry.rt.group})" if entry.rt.group else ""
        kinds.append([f"{entry.rt.kind}{group}", *cells, entry.gate, gates_of_kind(entry)])
        served = [v for v in versions if served_as(v, entry) is not None]
        missing = {v: absent(v, entry) for v in served}
        nowhere = set.intersection(*missing.values()) if missing else set()
        some = set().union(*missing.values()) - nowhere
        for path in sorted(path for path in some if not any(path.startswith(f"{other}.") for other in some)):
            cells = ["-" if v not in served or path in missing[v] else "yes" for v in versions]
            fields.append([entry.rt.kind, path, *cells, ", ".join(gates_of(entry, path))])
    for version in versions:
        release = release_of(version)
        sandbox = ", ".join(OF_VERSION[version]) or "none" if version in OF_VERSION else "not served"
        programs.append([version, release.name, ", ".join(sorted(release.gates)), sandbox])
    return "\n".join(
        [
            INTRODUCTION,
            KINDS,
            _table(["Kind", *versions, "Gate of the scheduler", "Gate of the API server"], kinds),
            FIELDS,
            _table(["Kind", "Field", *versions, "Gates of the API server"], fields),
            PROGRAMS,
            _table(
                ["Kubernetes", "Profiles decide as", "Gates of profiles that are on", "Gates of the sandbox"], programs
            ),
            ACCEPTANCE,
            _table(
                ["Case", *VERSIONS],
                [[case.name, *("yes" if case.runs_on(v) else "-" for v in VERSIONS)] for case in CASES],
            ),
        ]
    )


def unknown_fields() -> list[str]:
    """Fields that the scheduler reads and no version of Kubernetes has: those of structs that several kinds share, and
    misspelled ones, which would always be empty."""
    found = []
    for entry in read_kinds():
        missing = [absent(v, entry) for v in tested() if served_as(v, entry) is not None]
        for path in set.intersection(*missing) if missing else ():
            found.append(f"{entry.rt.kind}: {path}")
    return sorted(found)
