"""Admission policies for clusters that want no webhook in the path. Volcano: the chart's `custom.vap_enable` and
`custom.map_enable`.

The validating ones say what `cel_rules` can say; the mutating ones fill in the defaults of Jobs, Queues and PodGroups.
Unlike Volcano's they know RestartPartition, add svc for ray, take the scheduler's name as given, and touch no pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.api import names
from volcano_py.api.scheduling import DEFAULT_QUEUE
from volcano_py.webhooks import cel_rules
from volcano_py.webhooks.cel_rules import Rule
from volcano_py.webhooks.paths import PATHS, Path

Manifest = dict[str, Any]
_GROUP = "admissionregistration.k8s.io"


def documents(scheduler_name: str = names.SCHEDULER_NAME, *, mutating: str = "") -> Iterator[Manifest]:
    """Every policy with its binding; mutating ones, too, if the version in which the cluster serves them is given."""
    validating = {
        "/jobs/validate": cel_rules.JOBS,
        "/queues/validate": cel_rules.QUEUES,
        "/podgroups/validate": cel_rules.PODGROUPS,
        "/pods/validate": cel_rules.pods(scheduler_name),
        "/hypernodes/validate": cel_rules.HYPERNODES,
        "/jobflows/validate": cel_rules.JOBFLOWS,
    }
    for path, rules in validating.items():
        yield from _validating(PATHS[path], rules)
    if mutating:
        yield from _mutating(PATHS["/jobs/mutate"], _job_defaults(scheduler_name), mutating)
        yield from _mutating(PATHS["/queues/mutate"], _QUEUE_DEFAULTS, mutating)
        yield from _mutating(PATHS["/podgroups/mutate"], [_PODGROUP_QUEUE], mutating)


def _constraints(path: Path) -> Manifest:
    rule = {
        "apiGroups": [path.rt.group],
        "apiVersions": [path.rt.version],
        "operations": list(path.operations),
        "resources": [path.rt.plural],
    }
    return {"resourceRules": [rule]}


def _validating(path: Path, rules: list[Rule]) -> Iterator[Manifest]:
    name = f"{path.rt.kind.lower()}-validation-policy"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": _constraints(path),
        "validations": [{"expression": rule.expression, "message": rule.message} for rule in rules],
    }
    yield _policy("ValidatingAdmissionPolicy", "v1", name, spec)
    yield _binding("ValidatingAdmissionPolicyBinding", "v1", name, {"validationActions": ["Deny"]})


def _mutating(path: Path, changes: list[tuple[str, str]], version: str) -> Iterator[Manifest]:
    """`changes`: (when, which operations), both in CEL; the operations are those of a JSON patch."""
    name = f"{path.rt.kind.lower()}-mutation-policy"
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": f"{when} ? {operations} : []"}}
        for when, operations in changes
    ]
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _constraints(path),
        "mutations": mutations,
    }
    yield _policy("MutatingAdmissionPolicy", version, name, spec)
    yield _binding("MutatingAdmissionPolicyBinding", version, name, {})


def _policy(kind: str, version: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": f"{_GROUP}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _binding(kind: str, version: str, policy: str, spec: Manifest) -> Manifest:
    spec = {"policyName": policy, **spec}
    return {"apiVersion": f"{_GROUP}/{version}", "kind": kind, "metadata": {"name": f"{policy}-binding"}, "spec": spec}


def _add(path: str, value: str) -> str:
    return f"[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]"


def _job_defaults(scheduler_name: str) -> list[tuple[str, str]]:
    tasks = "object.spec.?tasks.orValue([])"
    least = "t.?minAvailable.orValue(t.?replicas.orValue(0))"
    plugins = "object.spec.?plugins.orValue({})"
    needs_svc = "['tensorflow', 'mpi', 'pytorch', 'ray']"
    return [
        ("object.spec.?queue.orValue('') == ''", _add("/spec/queue", f"'{DEFAULT_QUEUE}'")),
        ("object.spec.?schedulerName.orValue('') == ''", _add("/spec/schedulerName", f"'{scheduler_name}'")),
        ("object.spec.?maxRetry.orValue(0) == 0", _add("/spec/maxRetry", "3")),
        (
            f"object.spec.?minAvailable.orValue(0) == 0 && {tasks}.size() > 0",
            _add("/spec/minAvailable", f"{tasks}.map(t, {least}).sum()"),
        ),
        (
            f"{needs_svc}.exists(p, p in {plugins}) && !('svc' in {plugins})",
            _add("/spec/plugins/svc", "[]"),
        ),
        (f"'mpi' in {plugins} && !('ssh' in {plugins})", _add("/spec/plugins/ssh", "[]")),
    ]


_PATH = cel_rules._PATH
_WEIGHTS = cel_rules._WEIGHTS
_QUEUE_DEFAULTS = [
    ("!has(object.spec.reclaimable)", _add("/spec/reclaimable", "true")),
    ("object.spec.?weight.orValue(0) == 0", _add("/spec/weight", "1")),
    (
        f"{_PATH} != '' && {_WEIGHTS} != '' && !{_PATH}.startsWith('root')",
        "["
        f"JSONPatch{{op: 'replace', path: '/metadata/annotations/{names.HIERARCHY.replace('/', '~1')}', "
        f"value: 'root/' + {_PATH}}}, "
        f"JSONPatch{{op: 'replace', path: '/metadata/annotations/{names.HIERARCHY_WEIGHTS.replace('/', '~1')}', "
        f"value: '1/' + {_WEIGHTS}}}]",
    ),
]
_NAMESPACE_QUEUE = f"namespaceObject.metadata.?annotations[?'{names.POD_QUEUE_NAME}'].orValue('')"
_PODGROUP_QUEUE = (
    f"object.spec.?queue.orValue('{DEFAULT_QUEUE}') == '{DEFAULT_QUEUE}' && {_NAMESPACE_QUEUE} != ''",
    _add("/spec/queue", _NAMESPACE_QUEUE),
)
