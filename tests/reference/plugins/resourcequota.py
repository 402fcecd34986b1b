"""resourcequota: admits jobs within the ResourceQuotas of their namespace."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.reference.job import Job
from tests.reference.session import Session
from tests.reference.votes import PERMIT, REJECT
from volcano_py.api.quantity import milli_value


def resourcequota(session: Session, arguments: dict[str, Any]) -> None:
    quotas: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for m in session.cluster.of("ResourceQuota"):
        quotas[m["metadata"].get("namespace", "default")].append(m.get("status") or {})
    pending: dict[str, Counter[str]] = defaultdict(Counter)

    def namespace(job: Job) -> str:
        return job.group["metadata"].get("namespace", "default")

    def enqueueable(job: Job) -> int:
        if job.min_resources is None:
            return PERMIT
        for quota in quotas.get(namespace(job), ()):
            used = _amounts(quota.get("used"))
            for name, most in _amounts(quota.get("hard")).items():
                if name not in job.min_resources:
                    continue
                needed = used[name] + pending[namespace(job)][name] + milli_value(job.min_resources[name])
                if needed > most:
                    return REJECT
        return PERMIT

    def enqueued(job: Job) -> None:
        if job.min_resources is not None and namespace(job) in quotas:
            pending[namespace(job)].update(_amounts(job.min_resources))

    session.votes.register("JobEnqueueable", "resourcequota", enqueueable)
    session.votes.register("JobEnqueued", "resourcequota", enqueued)


def _amounts(quantities: dict[str, Any] | None) -> Counter[str]:
    return Counter({name: milli_value(q) for name, q in (quantities or {}).items()})
