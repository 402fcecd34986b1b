"""Remote: a plugin that calls another program over HTTP with JSON. Not in Kubernetes.

One call for each pod and point, with all nodes to evaluate. No call blocks the scheduler: while the call of a pod is in
progress, the scheduler continues with other pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call, Tls
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import CAPACITY_EVENTS, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Binder,
    NodesFilter,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import PENDING, SKIP, SUCCESS, Code, Status, error, unschedulable

T = TypeVar("T")
_RETRY = 5.0
"""Seconds after which a program that failed at PreEnqueue is called again."""
_RETRY_RESERVE = 1.0
"""Seconds after which a pod that was rejected at Reserve is tried again."""


class Verbs(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The paths that are appended to the URL at each point; a point without a verb is not called."""

    pre_enqueue: str = ""
    pre_filter: str = ""
    filter: str = ""
    post_filter: str = ""
    score: str = ""
    reserve: str = ""
    unreserve: str = ""
    permit: str = ""
    pre_bind: str = ""
    bind: str = ""
    post_bind: str = ""


class TlsArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    insecure: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class RemoteArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    url_prefix: str = ""
    verbs: Verbs = msgspec.field(default_factory=Verbs)
    timeout: str = "1s"
    """The timeout of a call, as a Go duration."""
    ignorable: bool = False
    """Whether a call that fails abstains; otherwise it is an error for the pod."""
    node_cache_capable: bool = False
    """Whether to send names instead of Node objects."""
    managed_resources: list[str] = []
    """The program is called only for pods that request one of these; empty: for all pods."""
    tls: TlsArguments = msgspec.field(default_factory=TlsArguments)


class Reply(msgspec.Struct, rename="camel"):
    """A response. Without a code it is success."""

    code: Code = Code.SUCCESS
    reasons: list[str] = []

    @property
    def status(self) -> Status:
        return Status(self.code, tuple(self.reasons))


class NamedNodes(Reply, rename="camel"):
    node_names: list[str] | None = None
    """The only nodes that can run the pod."""


class Refused(Reply, rename="camel"):
    refused: dict[str, Reply] = {}
    """The nodes that are rejected."""


class Freed(Reply, rename="camel"):
    nominated_node: str | None = None
    victims: list[str] = []
    """Pods to evict, as `namespace/name`."""


class Scores(Reply, rename="camel"):
    scores: dict[str, int] = {}
    """0 to 100."""


class Held(Reply, rename="camel"):
    timeout_seconds: float = 0.0
    """How long the pod waits; with the code `Wait`."""


class Remote(PreEnqueue, PreFilter, NodesFilter, PostFilter, Score, Reserve, Permit, PreBind, Binder, PostBind):
    name = "Remote"

    def __init__(self, arguments: RemoteArguments, handle: Handle) -> None:
        if not arguments.url_prefix.startswith(("http://", "https://")):
            raise ValueError(f"urlPrefix: {arguments.url_prefix!r} is not an http or https URL")
        self._args = arguments
        self._verbs = arguments.verbs
        self._handle = handle
        self._timeout = parse_duration(arguments.timeout)
        t = arguments.tls
        self._tls = Tls(t.insecure, t.ca_file, t.cert_file, t.key_file)

    # ---- points -----------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status:
        status = self._status("preEnqueue", self._verbs.pre_enqueue, pod)
        if status.code is Code.ERROR:
            self._handle.try_again(pod, _RETRY)
        return status

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        found = self._answer_of("preFilter", self._verbs.pre_filter, pod, NamedNodes, once=False)
        return (found.node_names, found.status) if isinstance(found, NamedNodes) else (None, found)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Status] | Status:
        names = [n.name for n in nodes]
        found = self._answer_of("filter", self._verbs.filter, pod, Refused, self._nodes(nodes), once=False, about=names)
        if not isinstance(found, Refused):
            return found
        if not found.status.ok:
            return found.status
        passed = frozenset(self._about("filter", pod))
        late = {n for n in names if n not in passed}
        rejected = {n: s.status for n, s in found.refused.items() if n in names or n not in passed}
        if late and len(rejected.keys() & set(names)) + len(late) == len(names):
            self._handle.forget_answer(pod, self._topic("filter"))
            return self.filter_nodes(state, pod, nodes)
        return rejected | dict.fromkeys(late, unschedulable(f"node(s) were not sent to {self.name} yet"))

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        body = {"refused": {n: {"code": s.code.value, "reasons": s.reasons} for n, s in rejected.items()}}
        found = self._answer_of("postFilter", self._verbs.post_filter, pod, Freed, lambda: body, once=False)
        if isinstance(found, Status):
            return PostFilterResult(unschedulable() if found in (SUCCESS, SKIP) else found)
        victims = []
        for key in found.victims:
            victim = self._handle.pod(key)
            if victim is None or not victim.node:
                return PostFilterResult(error(f"victim {key!r} is not a pod on a node"))
            victims.append(victim)
        return PostFilterResult(found.status, found.nominated_node, tuple(victims))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        names = [n.name for n in nodes]
        found = self._answer_of("score", self._verbs.score, pod, Scores, self._nodes(nodes), once=False, about=names)
        if isinstance(found, Status):
            return SKIP if found.ok else found
        for name in found.scores.keys() - set(self._about("score", pod)):
            return error(f"{name!r} is not among the nodes of the call")
        state.write(self.name, found.scores)
        return found.status

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        scores: dict[str, int] = state.read(self.name)
        if node.name in scores:
            return scores[node.name]
        if node.name in self._about("score", pod):
            raise ValueError(f"there is no score for node {node.name}")
        return 0

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        status = self._status("reserve", self._verbs.reserve, pod, node)
        if status.rejected:  # another pod may have been faster: calls for pods are concurrent
            self._handle.try_again(pod, _RETRY_RESERVE)
        return status

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._notify("unreserve", self._verbs.unreserve, pod, node)

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        found = self._answer_of("permit", self._verbs.permit, pod, Held, lambda: {"node": node})
        return (found.status, found.timeout_seconds) if isinstance(found, Held) else (found, 0.0)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._status("preBind", self._verbs.pre_bind, pod, node)

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._status("bind", self._verbs.bind, pod, node) if self._verbs.bind else SKIP

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._notify("postBind", self._verbs.post_bind, pod, node)

    def interests(self) -> Sequence[Interest]:
        return CAPACITY_EVENTS

    # ---- calls ------------------------------------------------------------------------------------------

    def _status(self, point: str, verb: str, pod: PodInfo, node: str = "") -> Status:
        found = self._answer_of(point, verb, pod, Reply, lambda: {"node": node} if node else {})
        return found.status if isinstance(found, Reply) else found

    def _answer_of(
        self,
        point: str,
        verb: str,
        pod: PodInfo,
        kind: type[T],
        body: Callable[[], Mapping[str, Any]] = dict,
        *,
        once: bool = True,
        about: Any = None,
    ) -> T | Status:
        """The response; or a status: success if the program is not called, PENDING until it has responded, or an
        error."""
        if not verb or not self._manages(pod):
            return SUCCESS
        call = self._call(point, verb, pod, body, about)
        answer = self._handle.answer(pod, self._topic(point), lambda: call, once=once)
        if answer is None:
            return PENDING
        try:
            return self._read(answer, kind)
        except ValueError as e:
            return SUCCESS if self._args.ignorable else error(f"{call.url}: {e}")

    def _read(self, answer: Answer, kind: type[T]) -> T:
        """Decode a response. Raises ValueError for a call that failed, and for a response of another form."""
        if answer.error:
            raise ValueError(answer.error)
        found = msgspec.convert(answer.body if answer.body is not None else {}, kind)
        if isinstance(found, Reply) and found.code is Code.PENDING:
            raise ValueError("the code Pending is not valid in a response")
        if isinstance(found, Reply) and found.code is Code.ERROR:
            raise ValueError(", ".join(found.reasons) or "the program returned an error")
        return found

    def _notify(self, point: str, verb: str, pod: PodInfo, node: str) -> None:
        if verb and self._manages(pod):
            self._handle.notify(pod, self._call(point, verb, pod, lambda: {"node": node}))

    def _call(
        self, point: str, verb: str, pod: PodInfo, body: Callable[[], Mapping[str, Any]], about: Any = None
    ) -> Call:
        common = {"plugin": self.name, "point": point}
        url = f"{self._args.url_prefix.rstrip('/')}/{verb}"
        return Call(
            url, lambda: {**common, "pod": msgspec.to_builtins(pod.pod), **body()}, self._timeout, self._tls, about
        )

    def _nodes(self, nodes: Sequence[NodeInfo]) -> Callable[[], Mapping[str, Any]]:
        if self._args.node_cache_capable:
            names = [n.name for n in nodes]
            return lambda: {"nodeNames": names}
        objects = [n.node for n in nodes]
        return lambda: {"nodes": [msgspec.to_builtins(o) for o in objects]}

    def _about(self, point: str, pod: PodInfo) -> Collection[str]:
        """The nodes of the call."""
        found = self._handle.known_answer(pod, self._topic(point))
        return found.about if found is not None else ()

    def _topic(self, point: str) -> str:
        return f"{self.name} {point}"

    def _manages(self, pod: PodInfo) -> bool:
        return not self._args.managed_resources or any(pod.requests.get(r) for r in self._args.managed_resources)
