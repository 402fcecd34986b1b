"""Those rules of admission that CEL can say, in CEL. Volcano: its ValidatingAdmissionPolicies.

Each stands for what a plain function of this package says; `tests/webhooks/test_policy_documents.py` holds the two
together. What looks at other objects (queues and their parents), at plugins' arguments, at graphs or at whole pod
templates is left to the webhooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from volcano_py.api import names
from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.webhooks.job_plugins import known_plugins
from volcano_py.webhooks.policies import ACTIONS, EVENTS

_LABEL = "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
_QUALIFIED = "'^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'"
_SUBDOMAIN = "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"
_CREATE = "request.operation != 'CREATE'"
_UPDATE = "request.operation != 'UPDATE'"


class Rule(NamedTuple):
    """`expression` is true where all is well; `message` is what is said where it is not."""

    expression: str
    message: str


def _listed(words: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _policies(at: str, where: str) -> list[Rule]:
    """Lifecycle policies at a path; `where` is what they are called in messages."""
    each = f"{at}.?policies.orValue([])"
    named = "(has(p.event) && p.event != '' ? [p.event] : []) + p.?events.orValue([])"
    every = f"{each}.map(p, {named})"
    return [
        Rule(
            f"{each}.all(p, !(has(p.exitCode) && ({named}).size() > 0))",
            f"{where}: must not specify event and exitCode simultaneously; make two policies of it",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || ({named}).size() > 0)",
            f"{where}: either event and exitCode should be specified: give each policy one of the two",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || ({named}).all(e, e in {_listed(EVENTS)}))",
            f"{where}: invalid policy event; valid events are {', '.join(EVENTS)}",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || p.?action.orValue('') in {_listed(ACTIONS)})",
            f"{where}: invalid policy action; valid actions are {', '.join(ACTIONS)}",
        ),
        Rule(f"{each}.all(p, !has(p.exitCode) || p.exitCode != 0)", f"{where}: 0 is not a valid error code (exitCode)"),
        Rule(
            f"{each}.all(p, !has(p.exitCode) || {each}.exists_one(o, has(o.exitCode) && o.exitCode == p.exitCode))",
            f"{where}: duplicate exitCode; name each once",
        ),
        Rule(
            f"{every}.all(es, es.all(e, {every}.exists_one(os, e in os)))",
            f"{where}: duplicate event across different policies; name each once",
        ),
        Rule(
            f"!{every}.exists(es, '*' in es) || {every}.all(es, es.all(e, e == '*'))",
            f"{where}: if there's * here, no other policy should be here: * is every event",
        ),
    ]


_REPLICAS = "t.?replicas.orValue(0)"
_TASKS = "object.spec.?tasks.orValue([])"
_PARTED = f"{_TASKS}.filter(t, has(t.partitionPolicy))"
_TOTAL = "t.partitionPolicy.?totalPartitions.orValue(0)"
_SIZE = "t.partitionPolicy.?partitionSize.orValue(0)"
_LEAST = "t.partitionPolicy.?minPartitions.orValue(0)"
_VOLUMES = "object.spec.?volumes.orValue([])"
_REQUESTS = "c.?resources.?requests.orValue({})"
_TOPOLOGY = "!(has(n.highestTierAllowed) && n.?highestTierName.orValue('') != '')"

JOBS = [
    Rule(f"{_TASKS}.size() > 0", "spec.tasks: No task specified in job spec; add at least one"),
    Rule(f"{_TASKS}.all(t, {_REPLICAS} >= 0)", "spec.tasks[].replicas: 'replicas' must be >= 0"),
    Rule(
        f"{_TASKS}.all(t, t.?minAvailable.orValue(0) >= 0)",
        "spec.tasks[].minAvailable: 'minAvailable' must be >= 0 in task",
    ),
    Rule(
        f"{_TASKS}.all(t, t.?minAvailable.orValue(0) <= {_REPLICAS})",
        "spec.tasks[].minAvailable: 'minAvailable' is greater than 'replicas' in task",
    ),
    Rule(
        f"{_TASKS}.all(t, {_TASKS}.exists_one(o, o.?name.orValue('') == t.?name.orValue('')))",
        "spec.tasks[].name: duplicated task name; call each task differently",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, t.?name.orValue('').matches({_LABEL}) && t.name.size() <= 63)",
        "spec.tasks[].name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
    ),
    Rule(
        f"{_CREATE} || (object.metadata.name.matches({_QUALIFIED}) && object.metadata.name.size() <= 63)",
        "metadata.name: the name part must consist of at most 63 alphanumeric characters, '-', '_' or '.'",
    ),
    Rule("object.spec.?minAvailable.orValue(0) >= 0", "spec.minAvailable: job 'minAvailable' must be >= 0"),
    Rule(
        f"object.spec.?minAvailable.orValue(0) <= {_TASKS}.map(t, {_REPLICAS}).sum()",
        "spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    Rule("object.spec.?maxRetry.orValue(0) >= 0", "spec.maxRetry: 'maxRetry' cannot be less than zero"),
    Rule(
        "object.spec.?ttlSecondsAfterFinished.orValue(0) >= 0",
        "spec.ttlSecondsAfterFinished: 'ttlSecondsAfterFinished' cannot be less than zero",
    ),
    Rule(
        f"{_PARTED}.all(t, {_TOTAL} > 0 && {_SIZE} > 0 && {_REPLICAS} == {_TOTAL} * {_SIZE})",
        "spec.tasks[].partitionPolicy: 'Replicas' are not equal to TotalPartitions*PartitionSize, both above 0",
    ),
    Rule(
        f"{_PARTED}.all(t, {_LEAST} <= 0 || !has(t.minAvailable) || t.minAvailable == {_LEAST} * {_SIZE})",
        "spec.tasks[].minAvailable: 'MinAvailable' is not equal to MinPartitions*PartitionSize",
    ),
    Rule(
        f"([object.spec.?networkTopology.orValue({{}})] + {_PARTED}.map(t, t.partitionPolicy.?networkTopology"
        f".orValue({{}}))).all(n, {_TOPOLOGY})",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously; keep one",
    ),
    Rule(
        f"{_CREATE} || object.spec.?queue.orValue('') != '{ROOT_QUEUE}'",
        "spec.queue: can not submit job to root queue; name a leaf queue",
    ),
    Rule(
        f"{_CREATE} || object.spec.?plugins.orValue({{}}).all(p, p in {_listed(sorted(known_plugins()))})",
        f"spec.plugins: unable to find job plugin; there are {', '.join(sorted(known_plugins()))}",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, t.template.spec.?containers.orValue([]).all(c, {_REQUESTS}.all(r, "
        f"quantity(string({_REQUESTS}[r])).sign() >= 0)))",
        "spec.tasks[].template.spec.containers[].resources.requests: must be greater than or equal to 0",
    ),
    *_policies("object.spec", "spec.policies"),
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, v.?mountPath.orValue('') != '')",
        "spec.volumes[].mountPath: mountPath is required",
    ),
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, {_VOLUMES}.exists_one(o, o.?mountPath.orValue('') == "
        "v.?mountPath.orValue('')))",
        "spec.volumes[].mountPath: duplicated mountPath; mount each volume somewhere else",
    ),
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, has(v.volumeClaim) != (v.?volumeClaimName.orValue('') != ''))",
        "spec.volumes[]: either VolumeClaim or VolumeClaimName must be specified, not both",
    ),
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, v.?volumeClaimName.orValue('') == '' || (v.volumeClaimName.size() <= 253 && "
        f"v.volumeClaimName.matches({_SUBDOMAIN})))",
        "spec.volumes[].volumeClaimName: invalid VolumeClaimName",
    ),
    Rule(
        f"{_UPDATE} || {_TASKS}.size() == oldObject.spec.?tasks.orValue([]).size()",
        "spec.tasks: job updates may not add or remove tasks",
    ),
    Rule(
        f"{_UPDATE} || object.spec.?queue.orValue('') == oldObject.spec.?queue.orValue('')",
        "spec.queue: job updates may not change fields other than sizes and priority; make a new job",
    ),
]

_GUARANTEE = "object.spec.?guarantee.?resource.orValue({})"
_DESERVED = "object.spec.?deserved.orValue({})"
_CAPABILITY = "object.spec.?capability.orValue({})"
_PATH = f"object.metadata.?annotations[?'{names.HIERARCHY}'].orValue('')"
_WEIGHTS = f"object.metadata.?annotations[?'{names.HIERARCHY_WEIGHTS}'].orValue('')"
_LIVING = "request.operation == 'DELETE'"

QUEUES = [
    Rule(
        f"{_LIVING} || [{_GUARANTEE}, {_DESERVED}, {_CAPABILITY}].all(r, r.all(k, quantity(string(r[k])).sign() >= 0))",
        "spec: quantities must be greater than or equal to 0",
    ),
    Rule(
        f"{_LIVING} || {_GUARANTEE}.all(k, k in {_DESERVED} && "
        f"!quantity(string({_DESERVED}[k])).isLessThan(quantity(string({_GUARANTEE}[k]))))",
        "spec.deserved: deserved must be >= guarantee for every guaranteed resource",
    ),
    Rule(
        f"{_LIVING} || {_DESERVED}.all(k, !(k in {_CAPABILITY}) || "
        f"!quantity(string({_DESERVED}[k])).isGreaterThan(quantity(string({_CAPABILITY}[k]))))",
        "spec.deserved: deserved must be <= capability",
    ),
    Rule(
        f"{_LIVING} || object.?status.?state.orValue('') in ['', 'Open', 'Closed']",
        "status.state: queue state must be in [Open Closed]",
    ),
    Rule(
        f"{_LIVING} || ({_PATH} == '') == ({_WEIGHTS} == '') && "
        f"{_PATH}.split('/').size() == {_WEIGHTS}.split('/').size()",
        f"metadata.annotations: {names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}",
    ),
    Rule(
        f"{_LIVING} || {_WEIGHTS} == '' || "
        f"{_WEIGHTS}.split('/').all(w, w.matches('^[0-9]+([.][0-9]+)?$') && double(w) > 0.0)",
        f"metadata.annotations: every weight in {names.HIERARCHY_WEIGHTS} must be a number and larger than 0",
    ),
    Rule(
        "request.operation != 'DELETE' || !(oldObject.metadata.name in ['default', 'root'])",
        "`default` and `root` queue can not be deleted",
    ),
    Rule(
        f"{_LIVING} || object.metadata.name == 'root' || object.spec.?parent.orValue('') != object.metadata.name",
        "spec.parent: a queue cannot use itself as parent",
    ),
]

PODGROUPS = [
    Rule(
        "([object.spec.?networkTopology.orValue({})] + object.spec.?subGroupPolicy.orValue([]).map(s, "
        f"s.?networkTopology.orValue({{}}))).all(n, {_TOPOLOGY})",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously; keep one",
    ),
]

_BUDGETS = _listed((names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE))
_GIVEN = "object.metadata.?annotations.orValue({})"
_BUDGET = "'^([1-9][0-9]{0,8}|[1-9][0-9]?%)$'"


def pods(scheduler_name: str) -> list[Rule]:
    """Only pods of this scheduler are looked at."""
    others = f"object.spec.?schedulerName.orValue('') != '{scheduler_name}'"
    return [
        Rule(
            f"{others} || {_BUDGETS}.all(k, !(k in {_GIVEN}) || {_GIVEN}[k].matches({_BUDGET}))",
            "metadata.annotations: a budget must be a positive integer, or a valid percentage which between 1% ~ 99%",
        ),
        Rule(
            f"{others} || !{_BUDGETS}.all(k, k in {_GIVEN})",
            f"not allow configure multiple annotations <{names.JDB_MIN_AVAILABLE} {names.JDB_MAX_UNAVAILABLE}> "
            "at same time; keep one",
        ),
    ]


HYPERNODES = [
    Rule(
        "object.spec.?members.orValue([]).size() > 0",
        "spec.members: member list must not be empty; name at least one",
    ),
]

_FLOWS = "object.spec.?flows.orValue([])"
_TARGETS = "f.?dependsOn.?targets.orValue([])"

JOBFLOWS = [
    Rule(
        f"{_FLOWS}.all(f, {_TARGETS}.all(t, {_FLOWS}.exists(o, o.?name.orValue('') == t)))",
        "spec.flows[].dependsOn.targets: jobflow Flow is not DAG: vertex is not defined; name flows of this JobFlow",
    ),
    Rule(
        f"{_FLOWS}.all(f, {_TARGETS}.all(t, t != f.?name.orValue('')))",
        "spec.flows[].dependsOn.targets: jobflow Flow is not DAG: a flow cannot wait for itself",
    ),
]
