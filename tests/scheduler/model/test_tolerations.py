"""Which tolerations tolerate which taints, in addition to the scenarios."""

from __future__ import annotations

import pytest

from volcano_py.api.core import Taint, Toleration
from volcano_py.scheduler.model.jobs.tolerations import tolerates


@pytest.mark.parametrize(
    ("operator", "bound", "value", "covered"),
    [
        ("Gt", "750", "950", True),
        ("Gt", "950", "950", False),
        ("Lt", "950", "800", True),
        ("Lt", "-5", "-6", True),
        ("Lt", "950", "high", False),
        ("Gt", "9223372036854775807", "9223372036854775808", False),
        ("Gt", "1.5", "2", False),
        ("Gt", "", "2", False),
        ("Near", "2", "2", False),
    ],
)
def test_numbers_are_compared(operator: str, bound: str, value: str, covered: bool) -> None:
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    assert tolerates(Toleration(key="sla", operator=operator, value=bound), taint) is covered
