"""Responses of programs of others: extenders, remote plugins, metrics sources, UFM, credential programs."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from tests.fuzz.target import Target
from volcano_py.controllers.hypernode import ufm
from volcano_py.kube.errors import ApiError, KubeError, from_response
from volcano_py.kube.exec_credentials import ExecCredentials
from volcano_py.scheduler.profiles.plugins.outside import extender_answers
from volcano_py.scheduler.profiles.plugins.outside.remote import Reply
from volcano_py.scheduler.remote import usage_source
from volcano_py.scheduler.remote.http import CallError, decoded

_EXTENDER = (
    (extender_answers.Filtered, {}, {"Nodes": {"items": [{"metadata": {"name": "n"}}]}, "NodeNames": ["n"]}),
    (list[extender_answers.HostPriority], [], [{"Host": "n", "Score": 5}]),
    (extender_answers.Bound, {}, {"Error": "e"}),
    (extender_answers.Preempted, {}, {"NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}}),
)


def _extender(data: bytes) -> None:
    body = decoded(data)
    for kind, empty, _ in _EXTENDER:
        try:
            found: Any = extender_answers.decode(body, kind, empty)
        except ValueError:
            continue
        if isinstance(found, extender_answers.Filtered):
            assert isinstance(found.passed, set)


def _remote(data: bytes) -> None:
    reply = msgspec.convert(decoded(data) or {}, Reply)
    assert reply.status is not None


def _usage(data: bytes) -> None:
    answer = decoded(data)
    for read in (lambda: usage_source._first_value(answer, "n"), lambda: usage_source._custom_values(answer)):
        try:
            read()
        except CallError:
            continue


def _ufm(data: bytes) -> None:
    ufm.discover(ufm.ports_of(data, "GET"))


def _status(data: bytes) -> None:
    """The body of a failed request."""
    raise from_response(500, data)


class _Program(ExecCredentials):
    """A credential program whose output is given."""

    def __init__(self, output: bytes) -> None:
        self._output = output
        super().__init__({"command": "program"}, "kubeconfig", {}, None)

    def _run(self) -> dict[str, Any]:
        return self._status_of(self._output.decode("utf-8", "replace"))


def _credentials(data: bytes) -> None:
    assert isinstance(_Program(data).headers(), dict)


def targets() -> list[Target]:
    prometheus = {"status": "success", "data": {"resultType": "vector", "result": [{"value": [1.0, "42.5"]}]}}
    custom = {"items": [{"describedObject": {"name": "n"}, "timestamp": "2026-01-01T00:00:00Z", "value": "500m"}]}
    ports = [{"description": "Computer IB Port", "peer_node_name": "leaf", "system_name": "n"}]
    credential = {"status": {"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z"}}
    status = {"kind": "Status", "code": 409, "reason": "Conflict", "message": "m", "details": {"causes": []}}
    dumps = orjson.dumps
    return [
        Target("extender answer", _extender, (CallError,), [dumps(row[2]) for row in _EXTENDER]),
        Target(
            "remote plugin answer",
            _remote,
            (CallError, msgspec.ValidationError),
            [dumps({"code": "Success", "reasons": ["r"], "score": 5})],
        ),
        Target("metrics answer", _usage, (CallError,), [dumps(prometheus), dumps(custom)]),
        Target("UFM answer", _ufm, (ufm.UfmError,), [dumps(ports)]),
        Target("error of the API server", _status, (ApiError,), [dumps(status)]),
        Target("credential program", _credentials, (KubeError,), [dumps(credential)]),
    ]
