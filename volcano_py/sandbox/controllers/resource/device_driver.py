"""The driver of devices that become ready only after their allocation: it sets their binding conditions. Kubernetes: a
DRA driver with binding conditions, for example one that attaches devices to nodes on demand.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

CLAIMS = "resourceclaims.resource.k8s.io"
DRIVERS = ".sandbox"
"""The suffix of the drivers whose devices it serves."""
_BYTES = b'"bindingConditions":'


def controller(api: Api) -> Controller:
    client = Client(api, "device-driver")

    async def sync(key: Any) -> None:
        claim = client.get(CLAIMS, key)
        if claim is not None:
            await _attach(client, claim)

    return Controller(
        "device-driver",
        sync,
        wakes={CLAIMS: lambda event: [event.entry.key] if event.type != DELETED and _BYTES in event.entry.tail else []},
    )


async def _attach(client: Client, claim: Object) -> None:
    status = claim.get("status") or {}
    allocation = status.get("allocation") or {}
    reported = {_id(row): row for row in status.get("devices") or ()}
    new = dict(reported)
    for result in (allocation.get("devices") or {}).get("results") or ():
        wanted = result.get("bindingConditions") or ()
        if wanted and result["driver"].endswith(DRIVERS) and _id(result) not in reported:
            driver, pool, device = _id(result)
            conditions = [_true(name) for name in wanted]
            new[_id(result)] = {"driver": driver, "pool": pool, "device": device, "conditions": conditions}
    if new != reported:
        await client.set_status(CLAIMS, claim, {**status, "devices": list(new.values())})


def _id(row: Object) -> tuple[str, str, str]:
    return row["driver"], row["pool"], row["device"]


def _true(name: str) -> Object:
    return {
        "type": name,
        "status": "True",
        "reason": "Attached",
        "message": "the device is ready",
        "lastTransitionTime": metadata.now(),
    }
