"""begin_cycle: everything that the start of a cycle writes to the model. A session, once open, only reads it.

Volcano: OpenSession and the snapshot of the cache, which copy the model instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.scheduler.framework.arguments import get_bool
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.jobs.session_jobs import SettledJobs
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.spec_class import PodKeys

_NO_KEYS = PodKeys()


def begin_cycle(model: Cluster, configuration: Configuration, now: float, keys: PodKeys = _NO_KEYS) -> None:
    """Prepare the model for a session.

    now   seconds since the epoch: nominations age
    keys  the labels and annotations of pods that the configured plugins read
    """
    model.dirty = model.jobs_moved = model.others_moved = False
    model.read_keys(keys)
    model.cycle += 1
    model.use_rules(configuration)
    deviations, claims = configuration.deviations, model.claims
    predicates = [option.arguments for tier in configuration.tiers for option in tier if option.name == "predicates"]
    limits_volumes = _is_on(predicates, "predicate.NodeVolumeLimitsEnable")
    allocates_devices = _is_on(predicates, "predicate.DynamicResourceAllocationEnable")
    claims.count_volumes(not (deviations.volumes_count_once and limits_volumes), not deviations.known_drivers)
    claims.serve_extended_resources(deviations.extended_resource_claims and allocates_devices)
    claims.settle()
    model.nominations.grow_older(now)
    model.keep(SettledJobs).refresh(model, configuration)


def _is_on(predicates: Iterable[Mapping[str, Any]], key: str) -> bool:
    """Whether the plugin predicates is configured, and an argument that is true by default is not false."""
    return any(get_bool(arguments.get(key)) is not False for arguments in predicates)
