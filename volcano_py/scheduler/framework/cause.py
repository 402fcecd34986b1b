"""Cause: why a job waits, as data. Not in Volcano, which has texts only.

A cause is a code and the fields of that code, which `explain.reasons` documents. The place that decides against a job
records one (`SessionJob.block`), because later the numbers that decided it are gone.
"""

from __future__ import annotations

from typing import NamedTuple

Value = str | int | float
"""A name, a count, or an amount in the units of `model.resource`."""


class Cause(NamedTuple):
    """One reason of one job."""

    code: str
    fields: dict[str, Value]
