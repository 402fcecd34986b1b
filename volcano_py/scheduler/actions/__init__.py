"""The actions that a configuration can name, one line each; a module is imported when it is used."""

from __future__ import annotations

from volcano_py.scheduler.framework.registry import ActionBuilder, Builders

ACTIONS: Builders[ActionBuilder] = Builders(
    {
        "enqueue": f"{__name__}.enqueue:Enqueue",
        "allocate": f"{__name__}.allocate:Allocate",
        "backfill": f"{__name__}.backfill:Backfill",
        "preempt": f"{__name__}.preempt:Preempt",
        "reclaim": f"{__name__}.reclaim:Reclaim",
        "reserve": f"{__name__}.reserve:ReserveNodes",
        "shuffle": f"{__name__}.shuffle:Shuffle",
        "gangpreempt": f"{__name__}.gangpreempt:GangPreempt",
        "gangreclaim": f"{__name__}.gangreclaim:GangReclaim",
    }
)
