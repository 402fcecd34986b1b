"""resourcequota: let in only what the namespace's quotas leave. Volcano: plugin resourcequota."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from volcano_py.api import quantity
from volcano_py.api.core import ResourceList, ResourceQuota
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.votes import PERMIT, REJECT

Amounts = dict[str, Fraction]


class ResourceQuotas:
    """No arguments. Quota scopes are not looked at, as in Volcano."""

    name = "resourcequota"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        quotas: dict[str, list[ResourceQuota]] = {}
        # In the order of their names: the first that is exceeded is told.
        for _, quota in sorted(session.cluster.others.get("ResourceQuota", {}).items()):
            quotas.setdefault(quota.metadata.namespace, []).append(quota)
        promised: dict[str, Amounts] = {}

        def enqueueable(job: SessionJob) -> int:
            minimum = job.pod_group.spec.min_resources
            if minimum is None:
                return PERMIT
            pending = promised.get(job.namespace, {})
            for quota in quotas.get(job.namespace, ()):
                hard, used = _amounts(quota.status.hard), _amounts(quota.status.used)
                wanted = {name: amount for name, amount in _amounts(minimum).items() if name in hard}
                if any(used.get(n, 0) + pending.get(n, 0) + amount > hard[n] for n, amount in wanted.items()):
                    text = (
                        f"resource quota insufficient, requested: {_text(wanted)}, used: {_text(used)}, "
                        f"limited: {_text(hard)}"
                    )
                    session.note(job, "Normal", "Unschedulable", text)
                    return REJECT
            return PERMIT

        def enqueued(job: SessionJob) -> None:
            minimum = job.pod_group.spec.min_resources
            if minimum is not None and job.namespace in quotas:
                pending = promised.setdefault(job.namespace, {})
                for name, amount in _amounts(minimum).items():
                    pending[name] = pending.get(name, Fraction(0)) + amount

        session.votes.add("job_enqueueable", self.name, enqueueable)
        session.votes.add("job_enqueued", self.name, enqueued)


def _amounts(resources: ResourceList | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (resources or {}).items()}


def _text(amounts: Amounts) -> str:
    return ", ".join(f"{name}={float(amount):g}" for name, amount in sorted(amounts.items()))
