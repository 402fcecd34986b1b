"""hypothesis strategies: cases for both schedulers, with configurations of every kind."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as s
from hypothesis.internal.conjecture import engine

from tests.reference.device_fields import with_devices
from tests.reference.full_clusters import FULL_THEMES, full_clusters
from tests.reference.network_clusters import NETWORK_THEMES, network_clusters
from tests.reference.numa_fields import with_numa
from tests.reference.plugin_fields import DRAWN_PLUGINS, add_plugin_fields, plugin_arguments
from tests.reference.usage_fields import with_usage
from tests.reference.volume_fields import with_volumes
from tests.strategies import PLUGIN_TIERS, THEMES, Manifest, clusters, one_in
from volcano_py.testing.table import configuration

_MORE_TIERS = (
    *PLUGIN_TIERS,
    [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"]],
    [["overcommit", "drf"], ["gang", "predicates", "proportion", "nodeorder"]],
    [["drf", "priority"], ["overcommit", "gang", "predicates", "nodeorder", "binpack"]],
    [["gang", "predicates", "proportion"], ["overcommit"]],
    [["priority"], ["overcommit", "nodeorder", "binpack"]],
    [["overcommit"], ["gang", "drf", "predicates", "nodeorder"]],
)
_CROWD_TIERS = (
    [
        ["priority", "gang", "conformance"],
        ["overcommit", "resourcequota", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ],
    [
        ["sla", "priority", "gang", "conformance", "pdb"],
        ["overcommit", "resourcequota", "drf", "predicates", "proportion", "binpack"],
    ],
    [
        ["cdp", "priority", "gang", "conformance"],
        ["resourcequota", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ],
    [
        ["pdb", "cdp", "gang"],
        ["sla", "priority", "conformance"],
        ["overcommit", "resourcequota", "predicates", "proportion", "binpack"],
    ],
    [
        ["sla", "priority"],
        ["gang", "conformance", "overcommit", "resourcequota", "drf", "predicates", "proportion", "nodeorder"],
    ],
    [["conformance", "cdp", "gang", "pdb"], ["resourcequota", "drf", "predicates", "proportion", "binpack"]],
    [["priority", "pdb", "gang", "cdp"], ["predicates", "binpack"]],
)
_CAPACITY_TIERS = (
    [
        ["priority", "gang", "conformance", "pdb"],
        ["resourcequota", "drf", "predicates", "capacity", "nodeorder", "binpack"],
    ],
    [["priority", "gang", "conformance", "pdb", "cdp"], ["resourcequota", "predicates", "capacity", "binpack"]],
    [
        ["priority", "conformance", "sla"],
        ["gang", "pdb", "cdp"],
        ["overcommit", "resourcequota", "drf", "predicates", "capacity"],
    ],
    [["gang", "conformance", "cdp"], ["sla", "overcommit", "resourcequota", "capacity", "pdb", "binpack"]],
    [
        ["sla", "pdb", "priority", "gang"],
        ["resourcequota", "predicates", "capacity", "overcommit", "resourcequota", "nodeorder"],
    ],
    [
        [
            "sla",
            "priority",
            "gang",
            "conformance",
            "cdp",
            "pdb",
            "drf",
            "resourcequota",
            "overcommit",
            "predicates",
            "binpack",
            "capacity",
        ]
    ],
)
_NEAR_TIERS = (
    [["priority", "gang", "conformance"], ["predicates", "nodeorder", "binpack", "network-topology-aware"]],
    [
        ["priority", "gang", "conformance", "cdp"],
        ["drf", "overcommit", "predicates", "proportion", "binpack", "network-topology-aware"],
    ],
    [
        ["sla", "priority", "gang", "conformance", "pdb"],
        ["overcommit", "predicates", "capacity", "binpack", "network-topology-aware"],
    ],
    [["network-topology-aware", "gang"], ["priority"], ["resourcequota", "overcommit", "predicates", "nodeorder"]],
    [["gang", "predicates", "network-topology-aware"]],
    [["priority", "gang"], ["resourcequota", "predicates", "proportion"]],
)
_FAIR_TIERS = (
    [["priority", "gang", "conformance", "cdp"], ["resourcequota", "overcommit", "drf", "predicates", "nodeorder"]],
    [["gang", "drf"], ["predicates", "binpack", "pdb"]],
    [["sla", "drf", "gang", "conformance"], ["resourcequota", "predicates"]],
)
"""With drf in a tree of queues, which cannot be combined with proportion."""
_TIERS = {
    **dict.fromkeys(NETWORK_THEMES, _NEAR_TIERS),
    "preempt": _CROWD_TIERS,
    "reclaim": (*_CROWD_TIERS, *_FAIR_TIERS),
    **dict.fromkeys(("capacity", "tree"), _CAPACITY_TIERS),
}
_CROWD_ACTIONS = {
    "gangpreempt": ("enqueue, allocate, gangpreempt, backfill", "gangpreempt, allocate", "allocate, gangpreempt"),
    "gangreclaim": ("enqueue, allocate, gangreclaim, backfill", "gangreclaim, allocate", "allocate, gangreclaim"),
    "topology": ("enqueue, allocate, backfill", "allocate", "enqueue, allocate, preempt", "allocate, reclaim"),
    "preempt": (
        "enqueue, allocate, preempt, backfill",
        "enqueue, allocate, preempt, shuffle",
        "preempt",
        "enqueue, allocate, preempt, reclaim",
    ),
    "reclaim": (
        "enqueue, allocate, reclaim, backfill",
        "enqueue, reclaim, allocate",
        "reclaim, preempt",
        "allocate, reclaim",
    ),
    **dict.fromkeys(
        ("capacity", "tree"),
        ("enqueue, allocate, reclaim, backfill", "enqueue, reclaim, allocate", "enqueue, allocate, preempt, reclaim"),
    ),
}
OWN_THEMES = ("usage", "numa-aware", "deviceshare", "volumes")
"""Plugins whose inputs no other theme has; they are not among `ALL_THEMES`."""
_USAGE_BASES = ("", "", "requests", "empty", "roles", "leaving", "preempt", "reclaim", "capacity", "topology")
_NUMA_BASES = ("", "", "", "queues", "leaving", "preempt", "reclaim", "capacity")
ALL_THEMES = (*THEMES, *FULL_THEMES * 12, *FULL_THEMES[:2] * 12, *NETWORK_THEMES * 9)
_PLUGIN_SETS: tuple[tuple[str, ...], ...] = (
    *((),) * 5,
    *((m,) for m in DRAWN_PLUGINS),
    *combinations(DRAWN_PLUGINS, 2),
    *(("resource-strategy-fit",),) * 3,
    ("nodegroup",),
)
_FLAGS = {
    "gang": (
        "enableJobReady",
        "enableJobPipelined",
        "enableJobOrder",
        "enableJobStarving",
        "enablePreemptable",
        "enableReclaimable",
    ),
    "priority": ("enableJobOrder", "enableTaskOrder", "enablePreemptable", "enableJobStarving"),
    "conformance": ("enablePreemptable", "enableReclaimable"),
    "drf": ("enableJobOrder", "enablePreemptable"),
    "proportion": (
        "enableQueueOrder",
        "enabledOverused",
        "enabledAllocatable",
        "enableJobEnqueued",
        "enableReclaimable",
        "enablePreemptive",
    ),
    "capacity": (
        "enableQueueOrder",
        "enabledAllocatable",
        "enableJobEnqueued",
        "enableReclaimable",
        "enablePreemptive",
    ),
    "pdb": ("enablePreemptable", "enableReclaimable", "enabledVictim"),
    "cdp": ("enablePreemptable", "enableReclaimable"),
    "sla": ("enableJobOrder", "enableJobEnqueued", "enableJobPipelined"),
    "overcommit": ("enableJobEnqueued",),
    "predicates": ("enablePredicate",),
    "nodeorder": ("enableNodeOrder",),
    "binpack": ("enableNodeOrder",),
}
_FILTERS = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "PodTopologySpread")
_SCORERS = (
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "imagelocality",
    "podtopologyspread",
)
_SCORERS_OF = {"spread": "podtopologyspread", "affinity": "podaffinity"}
_ACTIONS = (*("enqueue, allocate, backfill",) * 4, "allocate, backfill", "enqueue, allocate")
_ANY_ACTION = (
    "enqueue",
    "allocate",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "gangpreempt",
    "gangreclaim",
    "shuffle",
)
"""In any order and number, as users may configure them."""


@s.composite
def configurations(draw: s.DrawFn, theme: str = "", extra_plugins: tuple[str, ...] = ()) -> str:
    """Configurations with these actions, arguments, and sometimes disabled callbacks; `extra_plugins` are added to the
    plugins of the theme."""
    tiers = []
    chosen = draw(s.sampled_from(_TIERS.get(theme, _MORE_TIERS)))
    for names in chosen:
        tier: list[Any] = []
        for name in names:
            settings = draw(arguments(name, theme))
            if name in _FLAGS and one_in(draw, 8, name == "proportion" and theme == "queues"):
                settings[draw(s.sampled_from(_FLAGS[name]))] = False
            if name == "drf" and chosen in _FAIR_TIERS:
                settings["enableHierarchy"] = True
            if name == "capacity" and (theme == "tree" or (theme == "gangreclaim" and draw(s.booleans()))):
                settings["enableHierarchy"] = True
            tier.append({name: settings} if settings else name)
        tiers.append(tier)
    for name in extra_plugins:
        tier = draw(s.sampled_from(tiers))
        tier.insert(draw(s.integers(0, len(tier))), {name: draw(plugin_arguments(name))})
    if one_in(draw, 30):  # named twice by mistake
        draw(s.sampled_from(tiers)).append(draw(s.sampled_from(draw(s.sampled_from(tiers)))))
    conf: Manifest = {"plugins": tiers, "actions": draw(s.sampled_from(_CROWD_ACTIONS.get(theme, _ACTIONS)))}
    if one_in(draw, 40):
        conf["actions"] = ", ".join(draw(s.lists(s.sampled_from(_ANY_ACTION), min_size=1, max_size=5)))
    if draw(s.booleans()):
        own = {"predicateErrorCacheEnable": draw(s.sampled_from((True, False, False)))}
        conf["configurations"] = [{"name": name, "arguments": own} for name in ("allocate", "preempt", "reclaim")]
    if theme == "preempt" and one_in(draw, 3):
        others = [c for c in conf.get("configurations", []) if c["name"] != "preempt"]
        own = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
        conf["configurations"] = [*others, {"name": "preempt", "arguments": own}]
    if theme in ("gangpreempt", "gangreclaim") and draw(s.booleans()):
        own = {"maxDomains": draw(s.sampled_from((1, 2, 0))), "allowWholeBundle": draw(s.booleans())}
        conf.setdefault("configurations", []).append({"name": theme, "arguments": own})
    return configuration(conf)


@s.composite
def arguments(draw: s.DrawFn, plugin: str, theme: str = "") -> Manifest:
    if plugin == "nodeorder" and theme in _SCORERS_OF and draw(s.booleans()):  # without other scoring plugins
        return {f"{name}.weight": int(name == _SCORERS_OF[theme]) for name in _SCORERS}
    if plugin == "capacity" and theme == "tree":
        return {"ancestorReclaimLevel": draw(s.integers(0, 2))}
    if plugin == "network-topology-aware":
        return draw(near_arguments())
    if plugin == "sla" and draw(s.booleans()):
        return {"sla-waiting-time": draw(s.sampled_from(("3s", "1h", "long")))}
    if not one_in(draw, 4):
        return {}
    if plugin == "nodeorder":
        chosen = draw(s.lists(s.sampled_from(_SCORERS), min_size=1, unique=True))
        return {f"{name}.weight": draw(s.sampled_from((0, 1, 1, 7))) for name in chosen}
    if plugin == "binpack":
        found: Manifest = {"binpack.weight": draw(s.sampled_from((0, 1, 3, -1))), "binpack.cpu": draw(s.integers(0, 3))}
        if draw(s.booleans()):
            found |= {"binpack.resources": "nvidia.com/gpu, example.com/x", "binpack.resources.nvidia.com/gpu": 2}
        return found
    if plugin == "overcommit":
        return {"overcommit-factor": draw(s.sampled_from((1, 1.1, 1.7, 0.5)))}
    if plugin == "predicates":
        return {f"predicate.{draw(s.sampled_from(_FILTERS))}Enable": draw(s.sampled_from((False, "false")))}
    return {}


@s.composite
def near_arguments(draw: s.DrawFn) -> Manifest:
    found: Manifest = {}
    if one_in(draw, 4):
        found["weight"] = draw(s.sampled_from((0, 2, 10, -1)))
    if one_in(draw, 4):
        found["hypernode.binpack.cpu"] = draw(s.sampled_from((0, 2, -1)))
    if one_in(draw, 4):
        found["hypernode.binpack.normal-pod.enable"] = False
    if one_in(draw, 4):
        found["hypernode.binpack.normal-pod.fading"] = draw(s.sampled_from((0.5, 1, 0, -1)))
    if one_in(draw, 4):
        found["hypernode.gradient.evict.max-hypernodes"] = draw(s.sampled_from((1, 2, 3, -1)))
    return found


def each_another() -> Any:
    """A context in which every example is drawn independently.

    Otherwise hypothesis follows each example with up to five small variations, which reduces the variety to a sixth.
    """
    return patch.object(engine.ConjectureRunner, "generate_mutations_from", lambda *_: None, create=True)


@s.composite
def cases(draw: s.DrawFn, themes: tuple[str, ...] = ALL_THEMES) -> Manifest:
    """A cluster, a configuration, and the number of cycles: the batch form of `simulate run`."""
    theme = draw(s.sampled_from(themes))
    if theme == "usage":
        return draw(with_usage(draw(plain_cases(draw(s.sampled_from(_USAGE_BASES))))))
    if theme == "volumes":
        return draw(with_volumes(draw(plain_cases(draw(s.sampled_from(_NUMA_BASES))))))
    if theme == "deviceshare":
        return draw(with_devices(draw(plain_cases(draw(s.sampled_from(_NUMA_BASES))))))
    if theme == "numa-aware":
        return draw(with_numa(draw(plain_cases(draw(s.sampled_from(_NUMA_BASES))))))
    return draw(plain_cases(theme))


@s.composite
def plain_cases(draw: s.DrawFn, theme: str) -> Manifest:
    """Cases of a theme that is not a plugin."""
    extra_plugins = draw(s.sampled_from(_PLUGIN_SETS))
    if theme in NETWORK_THEMES:
        objects = draw(network_clusters(theme))
    else:
        objects = draw(full_clusters(theme) if theme in FULL_THEMES else clusters((theme,)))
    for plugin in extra_plugins:
        draw(add_plugin_fields(objects, plugin))
    return {
        "conf": draw(configurations(theme, extra_plugins)),
        "cycles": draw(s.integers(1, 3)),
        "seed": draw(s.integers(-3, 3)),
        "objects": objects,
        "come_back": theme not in THEMES and draw(s.booleans()),
    }
