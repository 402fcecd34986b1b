"""Numbers or percentages: maxSurge, maxUnavailable, minAvailable. Kubernetes: util/intstr."""

from __future__ import annotations


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """The number; percentages of `total` are rounded up or down. None is 0."""
    if value is None:
        return 0
    if isinstance(value, str):
        percent = int(value.rstrip("%"))
        return -(-percent * total // 100) if up else percent * total // 100
    return value
