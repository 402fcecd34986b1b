"""The usage that the scheduler has stored: read from its ConfigMap, for `vcctl fairshare` and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube.errors import NotFound
from volcano_py.scheduler.configuration.history import KEY, parts_of
from volcano_py.scheduler.plugins.fairshare.usage import UsageDocument

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

STORED_IN = "volcano-system/volcano-scheduler-history"
"""Where the chart lets the scheduler store it: NAMESPACE/NAME."""


async def stored_usage(client: Client, namespace: str, name: str) -> UsageDocument:
    """The stored usage. Raises ValueError."""
    where = f"ConfigMap {namespace}/{name}"
    try:
        found = await client.get(CONFIGMAP, name, namespace)
    except NotFound:
        raise ValueError(
            f"{where} does not exist; the scheduler writes it within a minute if the plugin fairshare is configured"
        ) from None
    text = (found.get("data") or {}).get(KEY, "")
    part = parts_of(text).get("fairshare") if text else None
    if part is None:
        raise ValueError(f"{where} has no usage; is the plugin fairshare configured?")
    try:
        return msgspec.convert(part, UsageDocument)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where} has a usage that is not valid: {error}") from None
