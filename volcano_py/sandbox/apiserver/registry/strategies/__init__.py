"""The strategies of built-in kinds, by qualified resource name; kinds without an entry are plain objects.

Kubernetes: pkg/registry, and the defaults and validation of pkg/apis.
"""

from __future__ import annotations

from volcano_py.sandbox.apiserver.registry.strategies import (
    admission,
    batch,
    cluster,
    core,
    events,
    gangs,
    pods,
    policies,
    quotas,
    rbac,
    services,
    workloads,
)
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    **core.STRATEGIES,
    **services.STRATEGIES,
    **events.STRATEGIES,
    **quotas.STRATEGIES,
    **pods.STRATEGIES,
    **cluster.STRATEGIES,
    **workloads.STRATEGIES,
    **batch.STRATEGIES,
    **rbac.STRATEGIES,
    **policies.STRATEGIES,
    **admission.STRATEGIES,
    **gangs.STRATEGIES,
}
