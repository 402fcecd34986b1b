"""Failed attempts in the log."""

import logging

import pytest

from volcano_py.controllers.failures import QUIET_SECONDS, FailureLog, from_outside
from volcano_py.kube.errors import ApiError, Forbidden, Invalid, OlderDefinition, Unreachable


def test_outages_are_logged_at_intervals_and_denials_each_time(caplog):
    now = 0.0
    failures = FailureLog(logging.getLogger("test"), lambda: now)
    for i in range(100):
        failures.report(f"job {i}", Unreachable("no answer"))
        failures.report(f"job {i}", Forbidden(403, "Forbidden", "no"))
    assert sum("no answer" in r.message for r in caplog.records if r.levelno == logging.WARNING) == 1
    assert sum(r.message.endswith(": no; retrying") for r in caplog.records) == 100
    now = QUIET_SECONDS
    failures.report("job 7", Unreachable("no answer"))
    assert caplog.records[-1].message == "job 7: no answer; retrying"


def test_a_namespace_that_is_being_deleted_is_no_failure(caplog):
    details = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
    failures = FailureLog(logging.getLogger("test"))
    failures.report("job 1", Forbidden(403, "Forbidden", "it is being terminated", details))
    assert not caplog.records


_DENIED = 'pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "n"'


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unreachable("no answer"), True),
        (ApiError(503, "ServiceUnavailable", "later"), True),
        (Forbidden(403, "Forbidden", _DENIED), True),
        (OlderDefinition("CRD jobs has no subresource status"), True),
        (Forbidden(403, "Forbidden", "pods is forbidden: exceeded quota: few"), False),
        (Invalid(422, "Invalid", "spec.x: Required value"), False),
    ],
)
def test_what_no_object_can_remedy(error, expected):
    """A Job is not terminated for it, and no queue's action is given up."""
    assert from_outside(error) is expected
