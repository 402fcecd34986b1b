"""AdmissionReviews on every path; the policies in CEL, and the CEL selectors that users write."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from tests.fuzz.target import Target, text_of
from tests.fuzz.targets.kinds import seeds_of
from volcano_py.api import dra, kinds
from volcano_py.sandbox.apiserver.cel.expressions import evaluate_with
from volcano_py.scheduler.model.claims.device_pools import Device
from volcano_py.scheduler.model.claims.device_selectors import DeviceSelectors, SelectorError
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import PATHS, AdmissionContext, Path
from volcano_py.webhooks.policy_documents import documents
from volcano_py.webhooks.review import answer

LONGEST = 1 << 17
"""Characters of a denial."""
_POLICY = "ValidatingAdmissionPolicy"


class _Queues:
    """A few queues, in a tree."""

    def __init__(self) -> None:
        self._index = QueueIndex()
        for name, parent in (("root", ""), ("default", "root"), ("value", "root"), ("child", "value")):
            spec: dict[str, Any] = {"weight": 1, **({"parent": parent} if parent else {})}
            self._index.put({"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})

    def get(self, name: str) -> Any:
        return self._index.get(name)

    def children(self, name: str) -> Any:
        return self._index.children(name)

    def all(self) -> Any:
        return self._index.all()


@cache
def _around() -> AdmissionContext:
    return AdmissionContext(queues=_Queues())


def _review(path: Path, data: bytes) -> None:
    response = orjson.loads(answer(path, data, _around()))["response"]
    assert isinstance(response["allowed"], bool)
    if not response["allowed"]:
        message = response["status"]["message"]
        assert message and len(message) < LONGEST, len(message)


def _seeds(path: Path) -> list[bytes]:
    found = []
    for operation in path.operations:
        for one in map(orjson.loads, seeds_of(path.rt)):
            request = {
                "uid": "u",
                "operation": operation,
                "name": "x",
                "namespace": "default",
                "object": one if operation != "DELETE" else None,
                "oldObject": one if operation != "CREATE" else None,
                "userInfo": {"username": "user", "groups": ["g"], "extra": {"k": ["v"]}},
            }
            review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
            found.append(orjson.dumps(review))
    return found


@cache
def _expressions(plural: str) -> list[str]:
    return [
        row["expression"]
        for document in documents()
        if document["kind"] == _POLICY
        and plural in document["spec"]["matchConstraints"]["resourceRules"][0]["resources"]
        for row in document["spec"]["validations"]
    ]


def _policy(plural: str, data: bytes) -> None:
    """All rules of a kind; one that fails denies, and has a value for every object."""
    obj = orjson.loads(data)
    variables = {
        "object": obj,
        "oldObject": None,
        "request": {"operation": "CREATE", "userInfo": {"username": "user"}, "namespace": "default"},
        "params": None,
        "namespaceObject": None,
        "authorizer": None,
        "variables": {},
    }
    for expression in _expressions(plural):
        try:
            evaluate_with(expression, variables)
        except ValueError:
            continue


_DEVICE = Device(
    id=("driver.example.com", "pool", "device"),
    spec=dra.Device(
        name="device",
        attributes={
            "driver.example.com/model": dra.DeviceAttribute(string="A100"),
            "index": dra.DeviceAttribute(int_=3),
            "version": dra.DeviceAttribute(version="1.2.3-rc1"),
        },
        capacity={"memory": dra.DeviceCapacity(value="80Gi")},
    ),
    taints=(),
    node="n",
    selector=None,
    everywhere=False,
    content=b"content",
)
_SELECTORS = (
    'device.driver == "driver.example.com"',
    'device.attributes["driver.example.com"].model.startsWith("A")',
    'device.capacity["driver.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.attributes["driver.example.com"].?index.orValue(0) in [1, 2, 3]',
    'semver("1.2.3").isGreaterThan(semver("1.2.2")) && [1, 2].all(x, x > 0) && "abc".matches("a.*")',
    'isQuantity("1Gi") ? quantity("1").add(quantity("2")).asInteger() == 3 : "a".find("b+") == ""',
)


def _selector(data: bytes) -> None:
    """An expression on one device, in a cache of its own."""
    selector = dra.DeviceSelector(cel=dra.CELSelector(expression=text_of(data)))
    DeviceSelectors().accept([selector], _DEVICE)


def targets() -> list[Target]:
    found = [
        Target(
            f"admission {name}",
            lambda data, path=path: _review(path, data),  # type: ignore[misc]
            (),
            _seeds(path),
        )
        for name, path in PATHS.items()
    ]
    for rt in (kinds.JOB, kinds.QUEUE, kinds.PODGROUP, kinds.HYPERNODE, kinds.CRONJOB, kinds.POD, kinds.JOBFLOW):
        if _expressions(rt.plural):
            found.append(
                Target(
                    f"policies of {rt.plural}",
                    lambda data, plural=rt.plural: _policy(plural, data),  # type: ignore[misc]
                    (orjson.JSONDecodeError,),
                    seeds_of(rt),
                )
            )
    found.append(Target("CEL selector", _selector, (SelectorError,), [s.encode() for s in _SELECTORS], "bytes"))
    return found
