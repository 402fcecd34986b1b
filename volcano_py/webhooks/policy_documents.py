"""Admission policies for clusters without webhooks. Volcano: the chart's `custom.vap_enable` and
`custom.map_enable`.

The validating policies contain the rules of `cel_rules` and `cel_queue_rules`; the mutating policies set the defaults
of Jobs, Queues and PodGroups. Unlike Volcano's policies they support RestartPartition, add svc for ray, use the
configured scheduler name, and do not match pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.api import names
from volcano_py.api.kinds import QUEUE, RESERVATION, ResourceType
from volcano_py.api.scheduling import DEFAULT_QUEUE
from volcano_py.webhooks import cel_queue_rules, cel_reservation_rules, cel_rules
from volcano_py.webhooks.cel_queue_rules import PATH, WEIGHTS
from volcano_py.webhooks.cel_rules import Rule
from volcano_py.webhooks.paths import PATHS, Path

Manifest = dict[str, Any]
_GROUP = "admissionregistration.k8s.io"


def documents(scheduler_name: str = names.SCHEDULER_NAME, *, mutating: str = "") -> Iterator[Manifest]:
    """All policies with their bindings; `mutating`: the API version of mutating policies, empty to omit them."""
    validating = {
        "/jobs/validate": cel_rules.JOBS,
        "/queues/validate": cel_queue_rules.QUEUES,
        "/podgroups/validate": cel_rules.PODGROUPS,
        "/pods/validate": cel_rules.pods(scheduler_name),
        "/hypernodes/validate": cel_rules.HYPERNODES,
        "/cronjobs/validate": cel_rules.CRONJOBS,
        "/jobflows/validate": cel_rules.JOBFLOWS,
    }
    beside_queues = {
        "/jobs/validate": cel_queue_rules.JOBS_BESIDE,
        "/queues/validate": cel_queue_rules.QUEUES_BESIDE,
        "/podgroups/validate": cel_queue_rules.PODGROUPS_BESIDE,
    }
    for path, rules in validating.items():
        yield from _validating(PATHS[path], rules)
    for path, rules in beside_queues.items():
        yield from _validating(PATHS[path], rules, beside=QUEUE)
    beside = cel_reservation_rules.RESERVATIONS_BESIDE
    yield from _validating(PATHS["/reservations/validate"], beside, beside=RESERVATION)
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


def _validating(path: Path, rules: list[Rule], beside: ResourceType | None = None) -> Iterator[Manifest]:
    """`beside`: the parameter kind; the API server evaluates the rules once per object of it."""
    name = f"{path.rt.kind.lower()}-validation-policy"
    spec: Manifest = {"failurePolicy": "Fail"}
    binding: Manifest = {"validationActions": ["Deny"]}
    if beside is not None:
        name = f"{path.rt.kind.lower()}-{beside.kind.lower()}s-validation-policy"
        spec["paramKind"] = {"apiVersion": beside.api_version, "kind": beside.kind}
        binding["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    spec |= {
        "matchConstraints": _constraints(path),
        "validations": [{"expression": rule.expression, "message": rule.message} for rule in rules],
    }
    yield _policy("ValidatingAdmissionPolicy", "v1", name, spec)
    yield _binding("ValidatingAdmissionPolicyBinding", "v1", name, binding)


def _mutating(path: Path, changes: list[tuple[str, str]], version: str) -> Iterator[Manifest]:
    """`changes`: pairs (condition, operations) in CEL; the operations are those of a JSON patch."""
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


MOST_TASKS = 64
"""CEL cannot count from 0 to n: further tasks get no names."""


def _task_names() -> tuple[str, str]:
    """A change that names all tasks without a name. Other defaults of tasks are not stored (`job_defaults`)."""
    numbers = f"[{', '.join(map(str, range(MOST_TASKS)))}].filter(i, i < object.spec.?tasks.orValue([]).size())"
    when = "object.spec.tasks[i].?name.orValue('') == ''"
    change = "JSONPatch{op: 'add', path: '/spec/tasks/' + string(i) + '/name', value: 'default' + string(i)}"
    return f"{numbers}.exists(i, {when})", f"{numbers}.filter(i, {when}).map(i, {change})"


def _job_defaults(scheduler_name: str) -> list[tuple[str, str]]:
    tasks = "object.spec.?tasks.orValue([])"
    part = "t.?partitionPolicy.?minPartitions.orValue(0)"
    least = (
        f"has(t.minAvailable) ? t.minAvailable : {part} > 0 ? {part} * t.?partitionPolicy.?partitionSize.orValue(0) : "
        "t.?replicas.orValue(0)"
    )
    plugins = "object.spec.?plugins.orValue({})"
    needs_svc = "['tensorflow', 'mpi', 'pytorch', 'ray']"
    return [
        ("object.spec.?queue.orValue('') == ''", _add("/spec/queue", f"'{DEFAULT_QUEUE}'")),
        ("object.spec.?schedulerName.orValue('') == ''", _add("/spec/schedulerName", f"'{scheduler_name}'")),
        ("object.spec.?maxRetry.orValue(0) == 0", _add("/spec/maxRetry", "3")),
        _task_names(),
        (
            f"(request.operation == 'CREATE' ? object.spec.?minAvailable.orValue(0) == 0 : "
            f"!has(object.spec.minAvailable)) && {tasks}.size() > 0",
            _add("/spec/minAvailable", f"{tasks}.map(t, {least}).sum()"),
        ),
        (
            f"{needs_svc}.exists(p, p in {plugins}) && !('svc' in {plugins})",
            _add("/spec/plugins/svc", "[]"),
        ),
        (f"'mpi' in {plugins} && !('ssh' in {plugins})", _add("/spec/plugins/ssh", "[]")),
    ]


_QUEUE_DEFAULTS = [
    ("!has(object.spec.reclaimable)", _add("/spec/reclaimable", "true")),
    ("object.spec.?weight.orValue(0) == 0", _add("/spec/weight", "1")),
    (
        f"{PATH} != '' && {WEIGHTS} != '' && !{PATH}.startsWith('root')",
        "["
        f"JSONPatch{{op: 'replace', path: '/metadata/annotations/{names.HIERARCHY.replace('/', '~1')}', "
        f"value: 'root/' + {PATH}}}, "
        f"JSONPatch{{op: 'replace', path: '/metadata/annotations/{names.HIERARCHY_WEIGHTS.replace('/', '~1')}', "
        f"value: '1/' + {WEIGHTS}}}]",
    ),
]
_NAMESPACE_QUEUE = f"namespaceObject.metadata.?annotations[?'{names.POD_QUEUE_NAME}'].orValue('')"
_PODGROUP_QUEUE = (
    f"object.spec.?queue.orValue('{DEFAULT_QUEUE}') == '{DEFAULT_QUEUE}' && {_NAMESPACE_QUEUE} != ''",
    _add("/spec/queue", _NAMESPACE_QUEUE),
)
