"""The admission rules that CEL can express, in CEL. Volcano: its ValidatingAdmissionPolicies.

Each rule corresponds to a Python function of this package; `tests/webhooks/test_policy_documents.py` verifies that
both give the same result. Rules for queues are in `cel_queue_rules`. The comparison of the pod templates of an updated
Job is in `cel_template_rules`. Graphs, whole pod templates and cron expressions are left to the webhooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from volcano_py.api import names
from volcano_py.api.scheduling import DEFAULT_QUEUE, ROOT_QUEUE
from volcano_py.webhooks.cel_template_rules import same_containers, same_pods
from volcano_py.webhooks.job_defaults import NEEDS_SVC
from volcano_py.webhooks.job_plugins import known_plugins
from volcano_py.webhooks.policies import ACTIONS, EVENTS

_LABEL = "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
_QUALIFIED = "'^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'"
_SUBDOMAIN = "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"
_EMPTY, _SCHEDULER = "''", f"'{names.SCHEDULER_NAME}'"
_CREATE = "request.operation != 'CREATE'"
_UPDATE = "request.operation != 'UPDATE'"


class Rule(NamedTuple):
    """`expression` is true for a valid object; `message` is the message of the denial."""

    expression: str
    message: str


def listed(words: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _each(items: str, name: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules, applied to every item of a list; `name` is the variable of the item in their expressions."""
    return [Rule(f"{items}.all({name}, {rule.expression})", rule.message) for rule in rules]


def _policies(at: str, where: str) -> list[Rule]:
    """Rules for the lifecycle policies at a path; `where` is the path in messages."""
    each = f"{at}.?policies.orValue([])"
    named = "(has(p.event) && p.event != '' ? [p.event] : []) + p.?events.orValue([])"
    every = f"{each}.map(p, {named})"
    return [
        Rule(
            f"{each}.all(p, !(has(p.exitCode) && ({named}).size() > 0))",
            f"{where}: must not specify event and exitCode simultaneously; split it into two policies",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || ({named}).size() > 0)",
            f"{where}: either event and exitCode should be specified: set one of the two in each policy",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || ({named}).all(e, e in {listed(EVENTS)}))",
            f"{where}: invalid policy event; valid events are {', '.join(EVENTS)}",
        ),
        Rule(
            f"{each}.all(p, has(p.exitCode) || p.?action.orValue('') in {listed(ACTIONS)})",
            f"{where}: invalid policy action; valid actions are {', '.join(ACTIONS)}",
        ),
        Rule(f"{each}.all(p, !has(p.exitCode) || p.exitCode != 0)", f"{where}: 0 is not a valid error code (exitCode)"),
        Rule(
            f"{each}.all(p, !has(p.exitCode) || {each}.exists_one(o, has(o.exitCode) && o.exitCode == p.exitCode))",
            f"{where}: duplicate exitCode; use each exit code once",
        ),
        Rule(
            f"{every}.all(es, es.all(e, {every}.exists_one(os, e in os)))",
            f"{where}: duplicate event across different policies; use each event once",
        ),
        Rule(
            f"!{every}.exists(es, '*' in es) || {every}.all(es, es.all(e, e == '*'))",
            f"{where}: if there's * here, no other policy should be here: * matches every event",
        ),
    ]


INTEGER = "double(int(quantity(string({0})).asApproximateFloat())) == quantity(string({0})).asApproximateFloat()"
"""An expression: a quantity is a whole number."""
_REPLICAS = "t.?replicas.orValue(0)"
_TASKS = "object.spec.?tasks.orValue([])"
_PARTED = f"{_TASKS}.filter(t, has(t.partitionPolicy))"
_TOTAL = "t.partitionPolicy.?totalPartitions.orValue(0)"
_SIZE = "t.partitionPolicy.?partitionSize.orValue(0)"
_LEAST = "t.partitionPolicy.?minPartitions.orValue(0)"
_PLUGINS, _OLD_PLUGINS = "object.spec.?plugins.orValue({})", "oldObject.spec.?plugins.orValue({})"
_VOLUMES = "object.spec.?volumes.orValue([])"
_REQUESTS = "c.?resources.?requests.orValue({})"


def _one_tier(place: str) -> str:
    """An expression: a topology, if there is one, names its tier once. Each place has a type of its own in CEL."""
    return f"(!has({place}) || !has({place}.highestTierAllowed) || {place}.?highestTierName.orValue('') == '')"


_DEPENDS = "t.?dependsOn.?name.orValue([])"
_CONTAINERS = "t.template.spec.?containers.orValue([])"
_CPU = "c.?resources.?requests.?cpu.orValue(c.?resources.?limits.?cpu.orValue(0))"
_MPI = "object.spec.?plugins.?mpi.orValue([])"
_WITH_MPI = "'mpi' in object.spec.?plugins.orValue({})"
_MASTERS = f"{_MPI}.filter(a, a.matches('^--?master=')).map(a, a.split('=')[1])"
_NEW_TASKS = [
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, {_DEPENDS}.all(n, n != t.name && "
        f"{_TASKS}.exists(o, o.?name.orValue('') == n) && {_DEPENDS}.exists_one(m, m == n)))",
        "spec.tasks[].dependsOn: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): "
        "list other tasks of this job, each once",
    ),
    Rule(
        f"{_CREATE} || !({_WITH_MPI}) || {_MPI}.exists(a, a.matches('^--?master$')) || {_TASKS}.exists(t, t.name == "
        f"({_MASTERS}.size() > 0 ? {_MASTERS}[0] : 'master'))",
        "spec.plugins.mpi: The specified mpi master task was not found; set it with --master=TASK",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, (object.metadata.name + '-' + t.?name.orValue('')).size() <= 61)",
        "spec.tasks[].name: create pod with name JOB-TASK-INDEX validate failed: must be no more than 63 characters",
    ),
    Rule(
        f"{_CREATE} || !{listed(('svc', *NEEDS_SVC))}.exists(p, p in {_PLUGINS}) || (object.metadata.name.matches("
        f"'^[a-z]([-a-z0-9]*[a-z0-9])?$') && object.metadata.name.size() <= ('ray' in {_PLUGINS} ? 54 : 63))",
        "metadata.name: the plugin svc creates a Service with this name, which is invalid; use at most 63 (ray: 54) "
        "lower case letters, digits or '-', beginning with a letter",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, {_CONTAINERS}.size() > 0)",
        "spec.tasks[].template.spec.containers: Required value: add at least one",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, {_CONTAINERS}.all(c, c.?image.orValue('') != ''))",
        "spec.tasks[].template.spec.containers[].image: Required value: set an image",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, {_CONTAINERS}.all(c, {_CONTAINERS}.exists_one(o, o.?name.orValue('') == "
        "c.?name.orValue(''))))",
        "spec.tasks[].template.spec.containers[].name: Duplicate value: use unique container names",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, t.?topologyPolicy.orValue('none') in ['', 'none'] || {_CONTAINERS}.all(c, "
        f"sign(quantity(string({_CPU}))) > 0 && {INTEGER.format(_CPU)}))",
        "spec.tasks[].template.spec.containers[].resources.requests.cpu: the cpu request isn't an integer; "
        "topologyPolicy needs whole CPUs",
    ),
]

_FIXED = (
    "job updates may not change fields other than minAvailable, tasks[*].replicas and priorityClassName; "
    "create a new Job"
)


def _defaulted(path: str, empty: str, default: str) -> str:
    """An expression: the value at a path; a default for an absent or empty one."""
    return f"({path}.orValue({empty}) == {empty} ? {default} : {path}.orValue({empty}))"


_ADDED = " || ".join(
    f"p == '{added}' && {listed(needing)}.exists(n, n in {_PLUGINS})"
    for added, needing in (("svc", NEEDS_SVC), ("ssh", ("mpi",)))
)
"""The plugin `p` is a default that admission has added."""
_SAME_PLUGINS = (
    f"({_PLUGINS}.all(p, p in {_OLD_PLUGINS} ? {_PLUGINS}[p] == {_OLD_PLUGINS}[p] : "
    f"{_PLUGINS}[p].size() == 0 && ({_ADDED})) && "
    f"{_OLD_PLUGINS}.all(p, p in {_PLUGINS} || {_OLD_PLUGINS}[p].size() == 0 && ({_ADDED})))"
)
_SAME_JOB = " && ".join(
    [
        f"object.spec.?{name}.orValue({empty}) == oldObject.spec.?{name}.orValue({empty})"
        for name, empty in (
            ("runningEstimate", "''"),
            ("minSuccess", "-1"),
            ("ttlSecondsAfterFinished", "-1"),
            ("policies", "[]"),
        )
    ]
    + ["object.spec.?networkTopology == oldObject.spec.?networkTopology"]
    + [
        f"{_defaulted(f'object.spec.?{name}', *values)} == {_defaulted(f'oldObject.spec.?{name}', *values)}"
        for name, values in (("queue", ("''", f"'{DEFAULT_QUEUE}'")), ("maxRetry", ("0", "3")))
    ]
    + [
        "(object.spec.?schedulerName.orValue('') == '' || object.spec.schedulerName == "
        f"{_defaulted('oldObject.spec.?schedulerName', _EMPTY, _SCHEDULER)})",
        _SAME_PLUGINS,
    ]
)
_SAME_TASK = " && ".join(
    [f"{_defaulted('t.?maxRetry', '0', '3')} == {_defaulted('o.?maxRetry', '0', '3')}"]
    + [f"t.?{name} == o.?{name}" for name in ("policies", "dependsOn", "partitionPolicy", "topologyPolicy")]
)


def _unchanged(same: str, message: str) -> Rule:
    """A rule that compares the tasks `t` of an updated Job with its old tasks `o`."""
    old = "oldObject.spec.?tasks.orValue([])"
    every = f"{_TASKS}.all(t, {old}.exists(o, t.?name.orValue('') == o.?name.orValue('') && {same}))"
    return Rule(f"{_UPDATE} || {_TASKS}.size() != {old}.size() || {every}", message)


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
        "spec.tasks[].name: duplicated task name; use unique task names",
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
        f"{_one_tier('object.spec.networkTopology')} && "
        f"{_PARTED}.all(t, {_one_tier('t.partitionPolicy.networkTopology')})",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously; keep one",
    ),
    Rule(
        f"{_CREATE} || object.spec.?queue.orValue('') != '{ROOT_QUEUE}'",
        "spec.queue: can not submit job to root queue; use a leaf queue",
    ),
    Rule(
        f"{_CREATE} || object.spec.?plugins.orValue({{}}).all(p, p in {listed(sorted(known_plugins()))})",
        f"spec.plugins: unable to find job plugin; valid plugins are {', '.join(sorted(known_plugins()))}",
    ),
    Rule(
        f"{_CREATE} || {_TASKS}.all(t, t.template.spec.?containers.orValue([]).all(c, {_REQUESTS}.all(r, "
        f"sign(quantity(string({_REQUESTS}[r]))) >= 0)))",
        "spec.tasks[].template.spec.containers[].resources.requests: must be greater than or equal to 0",
    ),
    *_policies("object.spec", "spec.policies"),
    *(
        Rule(f"{_CREATE} || {rule.expression}", rule.message)
        for rule in _each(_TASKS, "t", _policies("t", "spec.tasks[].policies"))
    ),
    *_NEW_TASKS,
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, v.?mountPath.orValue('') != '')",
        "spec.volumes[].mountPath: mountPath is required",
    ),
    Rule(
        f"{_CREATE} || {_VOLUMES}.all(v, {_VOLUMES}.exists_one(o, o.?mountPath.orValue('') == "
        "v.?mountPath.orValue('')))",
        "spec.volumes[].mountPath: duplicated mountPath; use a unique mountPath for each volume",
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
    Rule(f"{_UPDATE} || ({_SAME_JOB})", f"spec: {_FIXED}"),
    _unchanged(_SAME_TASK, f"spec.tasks[]: {_FIXED}"),
    _unchanged(same_pods("t.?template", "o.?template"), f"spec.tasks[].template: {_FIXED}"),
    _unchanged(same_containers("t.?template", "o.?template"), f"spec.tasks[].template.spec.containers: {_FIXED}"),
]

PODGROUPS = [
    Rule(
        f"{_one_tier('object.spec.networkTopology')} && "
        f"object.spec.?subGroupPolicy.orValue([]).all(s, {_one_tier('s.networkTopology')})",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously; keep one",
    ),
]

_BUDGETS = listed((names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE))
_GIVEN = "object.metadata.?annotations.orValue({})"
_BUDGET = "'^([1-9][0-9]{0,8}|[1-9][0-9]?%+)$'"


def pods(scheduler_name: str) -> list[Rule]:
    """Rules for pods of this scheduler only."""
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
        "spec.members: member list must not be empty; add at least one",
    ),
    Rule(
        # an invalid pattern is an evaluation error, which denies the request
        "object.spec.?members.orValue([]).all(m, 'a'.matches(m.?selector.?regexMatch.?pattern.orValue('a')) "
        "? true : true)",
        "spec.members[].selector.regexMatch.pattern: member regexMatch pattern is invalid",
    ),
]

CRONJOBS = [
    Rule(
        "object.spec.?schedule.orValue('') != ''",
        "spec.schedule: schedule is required, but got empty; use five fields such as '*/5 * * * *', or @hourly",
    ),
    Rule(
        "!object.spec.?schedule.orValue('').contains('TZ')",
        "spec.schedule: schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
    ),
    Rule(
        "object.metadata.name.size() <= 52",
        "metadata.name: cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)",
    ),
    Rule(
        "!has(object.spec.timeZone) || object.spec.timeZone != ''",
        "spec.timeZone: timeZone must be nil or non-empty string; omit it or set a time zone",
    ),
    Rule(
        "object.spec.?timeZone.orValue('').lowerAscii() != 'local'",
        "spec.timeZone: timeZone can't be Local; use one of https://www.iana.org/time-zones",
    ),
]

_FLOWS = "object.spec.?flows.orValue([])"
_TARGETS = "f.?dependsOn.?targets.orValue([])"

JOBFLOWS = [
    Rule(
        f"{_FLOWS}.all(f, {_TARGETS}.all(t, {_FLOWS}.exists(o, o.?name.orValue('') == t)))",
        "spec.flows[].dependsOn.targets: jobflow Flow is not DAG: vertex is not defined; list flows of this JobFlow",
    ),
    Rule(
        f"{_FLOWS}.all(f, {_TARGETS}.all(t, t != f.?name.orValue('')))",
        "spec.flows[].dependsOn.targets: jobflow Flow is not DAG: a flow cannot depend on itself",
    ),
]
