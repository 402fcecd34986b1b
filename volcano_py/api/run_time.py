"""How long a job may run, as an annotation or a label states it. Not in Volcano.

The annotation `volcano.sh/max-run-time` comes before Kueue's label.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

from volcano_py.api.duration import parse_duration
from volcano_py.api.names import MAX_RUN_TIME

KUEUE_MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
LONGEST = 366 * 86_400.0
"""Longer limits promise nothing, so that they count as none."""


def stated_run_time(annotations: Mapping[str, str], labels: Mapping[str, str]) -> float | None:
    """Seconds; infinite if what is stated is not usable, None if nothing is."""
    text = annotations.get(MAX_RUN_TIME) or labels.get(KUEUE_MAX_EXEC_TIME)
    if text is None:
        return None
    try:
        given = float(text) if text.isascii() and text.replace(".", "", 1).isdecimal() else parse_duration(text)
    except ValueError:
        return inf
    return usable_run_time(given)


def usable_run_time(seconds: float) -> float:
    """The limit, or infinite if it is none."""
    return seconds if isfinite(seconds) and 0 < seconds <= LONGEST else inf


def where_stated(annotations: Mapping[str, str]) -> str:
    """The annotation or label of which `stated_run_time` reads the value, for messages."""
    return f"annotation {MAX_RUN_TIME}" if annotations.get(MAX_RUN_TIME) else f"label {KUEUE_MAX_EXEC_TIME}"
