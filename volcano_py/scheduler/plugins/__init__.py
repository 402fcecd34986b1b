"""The plugins that a configuration can name, one line each; a module is imported when it is used."""

from __future__ import annotations

from volcano_py.scheduler.framework.registry import Builders, PluginBuilder

PLUGINS: Builders[PluginBuilder] = Builders(
    {
        "advance-reservation": f"{__name__}.advance_reservation:AdvanceReservation",
        "binpack": f"{__name__}.binpack:Binpack",
        "capacity": f"{__name__}.capacity:Capacity",
        "card-types": f"{__name__}.card_types:CardTypes",
        "cdp": f"{__name__}.cdp:Cdp",
        "conformance": f"{__name__}.conformance:Conformance",
        "consolidate": f"{__name__}.consolidate.plugin:Consolidate",
        "deviceshare": f"{__name__}.deviceshare:Deviceshare",
        "drf": f"{__name__}.drf:Drf",
        "earliest-deadline": f"{__name__}.earliest_deadline:EarliestDeadline",
        "extender": f"{__name__}.extender:Extender",
        "fairshare": f"{__name__}.fairshare.plugin:Fairshare",
        "fragmentation": f"{__name__}.fragmentation:Fragmentation",
        "gang": f"{__name__}.gang:Gang",
        "least-attained-service": f"{__name__}.least_attained_service:LeastAttainedService",
        "machine-groups": f"{__name__}.machine_groups:MachineGroups",
        "network-topology-aware": f"{__name__}.network_topology_aware:NetworkTopologyAware",
        "nodegroup": f"{__name__}.nodegroup:NodeGroup",
        "nodeorder": f"{__name__}.nodeorder:NodeOrder",
        "numa-aware": f"{__name__}.numaaware:NumaAware",
        "overcommit": f"{__name__}.overcommit:Overcommit",
        "pdb": f"{__name__}.pdb:Pdb",
        "predicates": f"{__name__}.predicates:Predicates",
        "priority": f"{__name__}.priority:Priority",
        "proportion": f"{__name__}.proportion:Proportion",
        "rescheduling": f"{__name__}.rescheduling:Rescheduling",
        "reservation": f"{__name__}.reservation:Reservation",
        "resource-strategy-fit": f"{__name__}.resource_strategy_fit:ResourceStrategyFit",
        "resourcequota": f"{__name__}.resourcequota:ResourceQuotas",
        "shortest-remaining": f"{__name__}.shortest_remaining:ShortestRemaining",
        "sla": f"{__name__}.sla:Sla",
        "sticky": f"{__name__}.sticky:Sticky",
        "task-topology": f"{__name__}.task_topology:TaskTopology",
        "tdm": f"{__name__}.tdm:Tdm",
        "usage": f"{__name__}.usage:Usage",
    }
)
