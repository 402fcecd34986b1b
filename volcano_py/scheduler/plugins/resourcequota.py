"""resourcequota: admit only what the namespace's quotas leave. Volcano: plugin resourcequota."""

from __future__ import annotations

from fractions import Fraction

from volcano_py.api import quantity
from volcano_py.api.core import ResourceList, ResourceQuota
from volcano_py.scheduler.explain.table import ENQUEUE_QUOTA
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource_names import MEMORY, PODS

Amounts = dict[str, Fraction]


class ResourceQuotas(Plugin):
    """No arguments. As in Volcano, the scopes of a quota are ignored."""

    name = "resourcequota"

    def on_session_open(self, session: Session) -> None:
        quotas: dict[str, list[ResourceQuota]] = {}
        # Sorted by name: the first quota that is exceeded is reported.
        for _, quota in sorted(session.cluster.others.get("ResourceQuota", {}).items()):
            quotas.setdefault(quota.metadata.namespace, []).append(quota)
        admitted: dict[str, Amounts] = {}

        def enqueueable(job: SessionJob) -> Vote:
            minimum = job.pod_group.spec.min_resources
            if minimum is None:
                return Vote.PERMIT
            pending = admitted.get(job.namespace, {})
            for quota in quotas.get(job.namespace, ()):
                hard, used = _amounts(quota.status.hard), _amounts(quota.status.used)
                requested = {name: amount for name, amount in _amounts(minimum).items() if name in hard}
                over = [n for n, amount in requested.items() if used.get(n, 0) + pending.get(n, 0) + amount > hard[n]]
                if over:
                    text = (
                        f"resource quota insufficient, requested: {_text(requested)}, used: {_text(used)}, "
                        f"limited: {_text(hard)}"
                    )
                    session.note(job, "Normal", "Unschedulable", text)
                    n = over[0]
                    held = used.get(n, Fraction(0)) + pending.get(n, Fraction(0))
                    job.block(_cause(quota.metadata.name, n, requested[n], held, hard[n]))
                    return Vote.REJECT
            return Vote.PERMIT

        def enqueued(job: SessionJob) -> None:
            minimum = job.pod_group.spec.min_resources
            if minimum is not None and job.namespace in quotas:
                pending = admitted.setdefault(job.namespace, {})
                for name, amount in _amounts(minimum).items():
                    pending[name] = pending.get(name, Fraction(0)) + amount

        session.add_job_enqueueable(enqueueable)
        session.add_job_enqueued(enqueued)


def _cause(quota: str, name: str, requested: Fraction, held: Fraction, limit: Fraction) -> Cause:
    """`name`: the name in the quota, such as `requests.cpu`; amounts are shown in the units of the resource."""
    resource = name.removeprefix("requests.").removeprefix("limits.")
    unit = 1 if resource in (MEMORY, PODS) else 1000
    return ENQUEUE_QUOTA.because(
        quota=quota,
        resource=resource,
        requested=float(requested * unit),
        held=float(held * unit),
        limit=float(limit * unit),
        missing=float((held + requested - limit) * unit),
    )


def _amounts(resources: ResourceList | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (resources or {}).items()}


def _text(amounts: Amounts) -> str:
    return ", ".join(f"{name}={float(amount):g}" for name, amount in sorted(amounts.items()))
