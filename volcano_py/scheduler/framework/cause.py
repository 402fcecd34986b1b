"""Cause: why a job waits, as data. Not in Volcano, which has texts only.

A cause is a code and the fields of that code, which `explain.reasons` documents. The code that decides against a job
records one (`SessionJob.block`), because the numbers behind the decision are not available later.
"""

from __future__ import annotations

from typing import NamedTuple

Value = str | int | float
"""A name, a count, or an amount in the units of `model.resource`."""


class Cause(NamedTuple):
    """One reason of one job."""

    code: str
    fields: dict[str, Value]
