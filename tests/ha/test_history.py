"""The history finds what must not be: each rule on a history that breaks it, and on one that does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.ha.history import Leases, Pods, Write, bound_twice, late, writes

BINDING = "pods/binding"


def write(at: float, user: str, resource: str, name: str = "p") -> Write:
    return Write(at, user, "create", resource, "default", name)


def pod(uid: str, node: str = "", cpu: str = "1", phase: str = "Pending", group: str = "g") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"namespace": "default", "name": uid, "uid": uid, "annotations": {"scheduling.k8s.io/group-name": group}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def test_a_write_after_the_takeover_is_late() -> None:
    done = [
        write(1, "a", "leases", "volcano"),
        write(2, "a", BINDING),
        write(3, "b", "leases", "volcano"),
        write(4, "b", BINDING),
        write(5, "other", BINDING),
    ]
    assert late(done, "volcano", ["a", "b"]) == []
    assert late([*done, write(6, "a", BINDING)], "volcano", ["a", "b"]) == [write(6, "a", BINDING)]


def test_two_bindings_of_one_pod() -> None:
    assert bound_twice([write(1, "a", BINDING, "p"), write(2, "a", BINDING, "q")]) == []
    assert bound_twice([write(1, "a", BINDING, "p"), write(2, "b", BINDING, "p")]) == ["default/p"]


def test_over_allocation_counts_pods_that_still_use_their_node() -> None:
    pods = Pods({"n": 2.0})
    for kind, one in (("ADDED", pod("a")), ("MODIFIED", pod("a", "n")), ("ADDED", pod("b", "n", "500m"))):
        pods.see(kind, one)
    pods.see("MODIFIED", pod("a", "n", phase="Succeeded"))
    pods.see("ADDED", pod("c", "n", "1500m"))
    assert pods.problems == []
    pods.see("ADDED", pod("d", "n", "1m"))
    assert pods.problems == ["node n has 2.001 CPUs of pods and 2"]


def test_a_pod_that_moves() -> None:
    pods = Pods({"m": 2.0, "n": 2.0})
    pods.see("ADDED", pod("a", "n"))
    pods.see("MODIFIED", pod("a", "m"))
    assert pods.problems == ["pod default/a moved from n to m"]


def test_partial_gangs() -> None:
    pods = Pods({"n": 8.0})
    pods.see("ADDED", pod("a", "n"), 1.0)
    assert pods.partial(2) == ["g"]
    pods.see("ADDED", pod("b", "n"), 1.5)
    assert pods.partial(2) == [] and pods.longest_partial(2) == 0.5


def test_the_takeover_is_by_another_identity() -> None:
    leases = Leases()
    for at, holder in ((1.0, "a"), (2.0, "a"), (3.0, ""), (4.0, "b")):
        leases.see("MODIFIED", {"metadata": {"name": "volcano"}, "spec": {"holderIdentity": holder}}, at)
    assert leases.holder("volcano") == "b"
    assert leases.takeover("volcano", 2.0, "a") == 4.0
    assert leases.takeover("volcano", 2.0, "b") is None


def test_only_successful_writes_of_the_audit_log_count(tmp_path: Path) -> None:
    def line(verb: str, code: int, at: str) -> str:
        reference = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": "p"}
        event = {"verb": verb, "objectRef": reference, "responseStatus": {"code": code}, "user": {"username": "a"}}
        return json.dumps(event | {"requestReceivedTimestamp": at}) + "\n"

    log = tmp_path / "audit.log"
    early, then = "2026-01-01T00:00:00.100000Z", "2026-01-01T00:00:00.200000Z"
    log.write_text(line("create", 201, then) + line("create", 409, then) + line("get", 200, then))
    size = log.stat().st_size
    with log.open("a") as file:
        file.write(line("create", 201, then) + line("patch", 200, early) + '{"verb": "cre')
    assert [w.verb for w in writes(log)] == ["patch", "create", "create"]
    assert [w.verb for w in writes(log, size)] == ["patch", "create"]
