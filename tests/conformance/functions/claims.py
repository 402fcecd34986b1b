"""Volumes and dynamic resources: arguments of predicates, amounts of devices, quotas of capacity."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from tests.conformance.functions.adapter import Adapter, Adapters, Data, arguments_after
from tests.conformance.functions.jobs import session_job
from volcano_py.api import quantity
from volcano_py.scheduler.model.claims.device_amounts import (
    DeviceAmount,
    DeviceAmounts,
    add,
    as_quantities,
    parse_amounts,
    saturated,
)
from volcano_py.scheduler.plugins.capacity.device_quota import DeviceQuota, least_of
from volcano_py.scheduler.plugins.predicates import Predicates

SHARED = "ns1/shared"
"""The claim of recorded tasks without a name; the data does not contain it."""

# ---- amounts --------------------------------------------------------------------------------------------------


def _amounts(data: Data | None) -> DeviceAmounts:
    return {
        name: DeviceAmount(
            entry.get("Count", 0), {k: quantity.parse(v) for k, v in (entry.get("Capacity") or {}).items()}
        )
        for name, entry in (data or {}).items()
        if isinstance(entry, dict)
    }


def _plain(amounts: Any) -> Any:
    """In a comparable form: without classes whose amounts are 0."""
    return as_quantities(amounts if amounts and isinstance(next(iter(amounts.values())), DeviceAmount) else {})


def _written(data: Data | None) -> Any:
    return _plain({k: v for k, v in _amounts(data).items() if v.count or v.capacity})


def _saturating(operation: Any) -> Any:
    return lambda _, a: [saturated(operation(a[0], a[1]))]


def _least(receiver: Data, _: list[Any]) -> list[Any]:
    job, _session = session_job(receiver)
    requested = {uid: t.get("dra_resreq") for uid, t in receiver["tasks"].items()}
    tasks = [(t, {t.uid: _amounts(requested[t.uid])} if requested[t.uid] else {}) for t in job.tasks.values()]
    return [_plain(least_of(job, tasks))]


# ---- quotas ---------------------------------------------------------------------------------------------------


def _quota(data: Data) -> DeviceQuota:
    made = DeviceQuota(_amounts(data.get("capability")))
    made.allocated, made.inqueue = _amounts(data.get("allocated")), _amounts(data.get("inqueue"))
    return made


def _of_queue(queue: Data) -> DeviceQuota:
    made = _quota(queue["dra"])
    for claim, users in (queue.get("resourceClaimRefs") or {}).items():
        made._users[claim] = users
    return made


def _claims(task: Data) -> dict[str, DeviceAmounts]:
    return {task.get("name") or SHARED: _amounts(task.get("dra_resreq"))}


def _shown(quota: DeviceQuota) -> Data:
    users = {claim: n for claim, n in quota._users.items() if n}
    return {"allocated": _plain(quota.allocated), "users": users}


def _shown_queue(expected: Data) -> list[Any]:
    queue = expected["args_after"][0]
    return [{"allocated": _written(queue["dra"]["allocated"]), "users": queue["resourceClaimRefs"]}]


def _check(_: Any, a: list[Any]) -> list[Any]:
    quota, wanted, with_capacity, with_inqueue = a
    return [_quota(quota).allows(_amounts(wanted), with_capacity, with_inqueue)]


def _new_quota(_: Any, a: list[Any]) -> list[Any]:
    return [_plain(DeviceQuota(parse_amounts(a[0])).capability)]


def _inqueue(_: Any, a: list[Any]) -> list[Any]:
    quota = _quota(a[0])
    add(quota.inqueue, _amounts(a[1]))
    return [_plain(quota.inqueue)]


def _moved(take: bool) -> Any:
    def call(_: Any, a: list[Any]) -> list[Any]:
        quota = _of_queue(a[0])
        (quota.take if take else quota.give_back)(_claims(a[1]))
        return [_shown(quota)]

    return call


def _queue_allocatable(receiver: Data, a: list[Any]) -> list[Any]:
    queue, task, _, with_inqueue = a
    quota = _of_queue(receiver["queueOpts"][queue["name"]])
    return [quota.allows(quota.new(_claims(task)), False, with_inqueue)]


def _enqueueable(receiver: Data, a: list[Any]) -> list[Any]:
    quota = _of_queue(receiver["queueOpts"][a[0]["name"]])
    job = SimpleNamespace(
        task_min_available=a[1].get("task_min_available") or {}, min_available=a[1].get("min_available", 0)
    )
    tasks = [
        (
            SimpleNamespace(namespace="", name=t.get("name", ""), uid=uid, role=t.get("role", "")),
            {uid: _amounts(t.get("dra_resreq"))},
        )
        for uid, t in a[1]["tasks"].items()
    ]
    fits = quota.allows(
        least_of(job, tasks),  # type: ignore[arg-type]
        bool(receiver.get("draConsumableCapacityEnable")),
        True,
    )
    return [fits, None if fits else ["dra-resource-exceeded"]]


# ---- arguments ------------------------------------------------------------------------------------------------


def _volume_arguments(given: Data) -> Data:
    read = Predicates(given).arguments
    points = [msgspec.structs.asdict(point) for point in read.volume_shape]
    shape = [{k.capitalize(): v for k, v in point.items() if v} for point in points]
    return {
        "VolumeBindingArgs": {"BindTimeoutSeconds": read.bind_timeout, "Shape": shape},
        "Weight": read.volume_weight,
    }


def _device_arguments(given: Data) -> Data:
    return {"DynamicResourcesArgs": {"FilterTimeout": f"{Predicates(given).arguments.filter_timeout}s"}}


def _first_after(expected: Data) -> list[Any]:
    return arguments_after(expected)[:1]


ADAPTERS: Adapters = {
    "api.SaturatingAdd": _saturating(lambda a, b: a + b),
    "api.SaturatingMul": _saturating(lambda a, b: a * b),
    "api.JobInfo.GetMinDRAResources": Adapter(_least, lambda e: [_written(e["result"][0])]),
    "capacity.parseDRAResourceList": Adapter(
        lambda _, a: [_plain(parse_amounts(a[0]))], lambda e: [_written(e["result"][0])]
    ),
    "capacity.newDRAQuotaAttr": Adapter(_new_quota, lambda e: [_written(e["result"][0]["capability"])]),
    "capacity.updateDRAInqueue": Adapter(_inqueue, lambda e: [_written(e["args_after"][0]["inqueue"])]),
    "capacity.checkDRAAllocatable": _check,
    "capacity.addTaskDRAAllocated": Adapter(_moved(True), _shown_queue),
    "capacity.removeTaskDRAAllocated": Adapter(_moved(False), _shown_queue),
    "capacity.capacityPlugin.queueAllocatable": _queue_allocatable,
    "capacity.capacityPlugin.jobEnqueueable": _enqueueable,
    "predicates.defaultVolumeBindingArgs": lambda _, a: [_volume_arguments({})],
    "predicates.setUpVolumeBindingArgs": Adapter(lambda _, a: [_volume_arguments(a[1])], _first_after),
    "predicates.defaultDynamicResourcesArgs": lambda _, a: [_device_arguments({})],
    "predicates.setUpDynamicResourcesArgs": Adapter(lambda _, a: [_device_arguments(a[1])], _first_after),
}
