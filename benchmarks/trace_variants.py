"""Variants of a trace with another mix of pods, as the paper of FGD (Weng et al., USENIX ATC 2023) describes them.

`gpushare40`: shares of cards are 40 % of the GPUs that pods request, whole cards the rest. `gpuspec33`: 33 % of the
pods with GPUs accept one model only, each model as often as the cluster has cards of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import msgspec

from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode

_SEED = 1
_NAME = re.compile(r"(gpushare|gpuspec)(\d+)")


def variant(name: str, jobs: Sequence[TraceJob], nodes: Sequence[TraceNode]) -> list[TraceJob]:
    """The jobs of a variant. Raises TraceError for an unknown name, and if the trace has no pods or nodes for it."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[2]) > 100:
        raise TraceError(f"unknown variant {name!r}; use gpushareN or gpuspecN with a percentage N")
    share, random = int(found[2]) / 100, Random(_SEED)
    if found[1] == "gpuspec":
        models = [node.model for node in nodes for _ in range(node.capacity.get(GPU, 0) // 1000)]
        if not models:
            raise TraceError(f"{name}: no node has GPUs, so there are no models")
        return [
            msgspec.structs.replace(job, models=(random.choice(models),))
            if job.cards and random.random() < share
            else job
            for job in jobs
        ]
    parts = [job for job in jobs if job.cards and job.share < 1000]
    whole = [job for job in jobs if job.cards and job.share == 1000]
    requested = sum(job.requests[GPU] for job in jobs)
    chosen = [job for job in jobs if not job.cards]
    for what, of, most in (("shares of", parts, share * requested), ("whole", whole, (1 - share) * requested)):
        if most and not of:
            raise TraceError(f"{name}: no pod of the trace requests {what} cards")
        drawn = 0
        while drawn < most:
            chosen.append(random.choice(of))
            drawn += chosen[-1].requests[GPU]
    return chosen
