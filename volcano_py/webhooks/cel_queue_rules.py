"""Admission rules for queues in CEL: rules for one queue, and rules for a queue and each other queue of the cluster.

The second group uses policies with parameters (`paramKind`): the API server evaluates them once per queue, with that
queue as `params`. They compare two queues. Rules over three or more queues (sums over siblings, chains of ancestors)
or over a missing queue are left to the webhooks and the queue controller.
"""

from __future__ import annotations

from volcano_py.api import names
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.webhooks.cel_rules import INTEGER, Rule

_GUARANTEE = "object.spec.?guarantee.?resource.orValue({})"
_DESERVED = "object.spec.?deserved.orValue({})"
_CAPABILITY = "object.spec.?capability.orValue({})"
PATH = f"object.metadata.?annotations[?'{names.HIERARCHY}'].orValue('')"
WEIGHTS = f"object.metadata.?annotations[?'{names.HIERARCHY_WEIGHTS}'].orValue('')"
_LIVING = "request.operation == 'DELETE'"


def _same(*maps: str) -> str:
    """An expression: maps of the spec are as before. CEL does not compare an object with an empty map."""
    return " && ".join(f"object.spec.?{one}.orValue({{}}) == oldObject.spec.?{one}.orValue({{}})" for one in maps)


QUEUES = [
    Rule(
        f"{_LIVING} || [{_GUARANTEE}, {_DESERVED}, {_CAPABILITY}].all(r, r.all(k, sign(quantity(string(r[k]))) >= 0))",
        "spec: quantities must be greater than or equal to 0",
    ),
    Rule(
        "request.operation != 'CREATE' || object.metadata.name.size() <= 63",
        f"metadata.name: the name is the label {names.QUEUE_NAME} of pods, a value of which must be no more than 63 "
        "bytes; use a shorter name",
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
        f"{_LIVING} || ({PATH} == '') == ({WEIGHTS} == '') && {PATH}.split('/').size() == {WEIGHTS}.split('/').size()",
        f"metadata.annotations: {names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}",
    ),
    Rule(
        f"{_LIVING} || {WEIGHTS} == '' || "
        f"{WEIGHTS}.split('/').all(w, w.matches('^[0-9]+([.][0-9]+)?$') && double(w) > 0.0)",
        f"metadata.annotations: every weight in {names.HIERARCHY_WEIGHTS} must be a number and larger than 0",
    ),
    Rule(
        f"request.operation != 'DELETE' || !(oldObject.metadata.name in ['{DEFAULT_QUEUE}', '{ROOT_QUEUE}'])",
        "`default` and `root` queue can not be deleted",
    ),
    Rule(
        f"{_LIVING} || object.metadata.name == 'root' || object.spec.?parent.orValue('') != object.metadata.name",
        "spec.parent: a queue cannot use itself as parent",
    ),
    Rule(
        f"{_LIVING} || [{_GUARANTEE}, {_DESERVED}, {_CAPABILITY}].all(r, r.all(k, !k.contains('/') || "
        f"k.contains('kubernetes.io/') || {INTEGER.format('r[k]')}))",
        "spec: amounts of extended resources must be an integer",
    ),
    Rule(
        f"request.operation != 'UPDATE' || object.metadata.name != '{ROOT_QUEUE}' || "
        f"({_same('capability', 'deserved', 'guarantee.?resource')})",
        "root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
    ),
]

_NAME = "params.metadata.name"
_STATE = "params.?status.?state.orValue('')"
_PARENT = f"params.?spec.?parent.orValue('{ROOT_QUEUE}')"
_JOBS_QUEUE = f"object.spec.?queue.orValue('{DEFAULT_QUEUE}')"
_OF_JOB = f"request.operation != 'CREATE' || {_JOBS_QUEUE} != {_NAME}"

JOBS_BESIDE = [
    Rule(
        f"{_OF_JOB} || {_STATE} == '{QUEUE_OPEN}'",
        "spec.queue: can only submit job to queue with state `Open`; open it, or use another queue",
    ),
    Rule(
        f"request.operation != 'CREATE' || {_JOBS_QUEUE} == '{ROOT_QUEUE}' || {_PARENT} != {_JOBS_QUEUE}",
        "spec.queue: can only submit job to leaf queue; use one of its descendants",
    ),
]
PODGROUPS_BESIDE = [
    Rule(
        f"object.spec.?queue.orValue('') != {_NAME} || {_STATE} == '{QUEUE_OPEN}'",
        "spec.queue: can only submit PodGroup to queue with state `Open`; open it, or use another queue",
    ),
]

_ITSELF = f"request.operation == 'DELETE' || {_NAME} == object.metadata.name"
_ABOVE = f"{_ITSELF} || {_NAME} == '{ROOT_QUEUE}' || {_NAME} != object.spec.?parent.orValue('{ROOT_QUEUE}')"
_BELOW = f"{_ITSELF} || object.metadata.name == '{ROOT_QUEUE}' || {_PARENT} != object.metadata.name"
_UNCHANGED = (
    "request.operation == 'UPDATE' && object.spec.?parent.orValue('') == oldObject.spec.?parent.orValue('') && "
    + _same("capability", "deserved", "guarantee.?resource")
)


def _of(queue: str, text: str) -> str:
    """An expression about `object`, rewritten for another variable."""
    return text.replace("object.", f"{queue}.").replace(".spec.", ".?spec.")


def _within(inner: str, outer: str) -> str:
    """An expression: every amount of `inner` is at most that of `outer`; a missing amount is zero.

    An `outer` without any amount is not set, and limits nothing.
    """
    more = f"quantity(string({inner}[k])).isGreaterThan(quantity(string({outer}[k])))"
    return f"{outer}.size() == 0 || {inner}.all(k, k in {outer} ? !{more} : sign(quantity(string({inner}[k]))) <= 0)"


def _capability_within(inner: str, outer: str) -> str:
    """An expression: every capability of `inner` is at most that of `outer`; missing or zero means unlimited."""
    more = f"quantity(string({inner}[k])).isGreaterThan(quantity(string({outer}[k])))"
    return f"{inner}.all(k, !(k in {outer}) || sign(quantity(string({outer}[k]))) <= 0 || !{more})"


QUEUES_BESIDE = [
    Rule(
        f"{_ITSELF} || {PATH} == '' || !{_of('params', PATH)}.startsWith({PATH} + '/')",
        f"metadata.annotations: the path of {names.HIERARCHY} is not allowed to be in the sub path of another queue's",
    ),
    Rule(
        f"request.operation != 'DELETE' || {_PARENT} != oldObject.metadata.name",
        "queue can not be deleted because it has child queues; delete them first",
    ),
    Rule(
        f"{_ABOVE} || {_PARENT} != object.metadata.name",
        "spec.parent: the parent is a child of this queue: that would be a cycle",
    ),
    Rule(
        f"({_ABOVE}) || ({_UNCHANGED}) || {_capability_within(_CAPABILITY, _of('params', _CAPABILITY))}",
        "spec.capability: capability exceeds its ancestor's capability",
    ),
    Rule(
        f"({_ABOVE}) || ({_UNCHANGED}) || ({_within(_GUARANTEE, _of('params', _GUARANTEE))})",
        "spec.guarantee: sum of children's guarantee exceeds parent's guarantee limit",
    ),
    Rule(
        f"({_ABOVE}) || ({_UNCHANGED}) || ({_within(_DESERVED, _of('params', _DESERVED))})",
        "spec.deserved: sum of children's deserved exceeds parent's deserved limit",
    ),
    Rule(
        f"({_BELOW}) || ({_UNCHANGED}) || {_capability_within(_of('params', _CAPABILITY), _CAPABILITY)}",
        "spec.capability: capability is smaller than its descendants' max capability",
    ),
    Rule(
        f"({_BELOW}) || ({_UNCHANGED}) || (({_within(_of('params', _GUARANTEE), _GUARANTEE)}) && "
        f"({_within(_of('params', _DESERVED), _DESERVED)}))",
        "spec: sum of children's guarantee or deserved exceeds this queue's",
    ),
]
