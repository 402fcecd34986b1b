"""The plugins that a configuration can name, one line each."""

from __future__ import annotations

from volcano_py.scheduler.framework.registry import PluginBuilder
from volcano_py.scheduler.plugins.binpack import Binpack
from volcano_py.scheduler.plugins.capacity import Capacity
from volcano_py.scheduler.plugins.cdp import Cdp
from volcano_py.scheduler.plugins.conformance import Conformance
from volcano_py.scheduler.plugins.deviceshare import Deviceshare
from volcano_py.scheduler.plugins.drf import Drf
from volcano_py.scheduler.plugins.extender import Extender
from volcano_py.scheduler.plugins.gang import Gang
from volcano_py.scheduler.plugins.network_topology_aware import NetworkTopologyAware
from volcano_py.scheduler.plugins.nodegroup import NodeGroup
from volcano_py.scheduler.plugins.nodeorder import NodeOrder
from volcano_py.scheduler.plugins.numaaware import NumaAware
from volcano_py.scheduler.plugins.overcommit import Overcommit
from volcano_py.scheduler.plugins.pdb import Pdb
from volcano_py.scheduler.plugins.predicates import Predicates
from volcano_py.scheduler.plugins.priority import Priority
from volcano_py.scheduler.plugins.proportion import Proportion
from volcano_py.scheduler.plugins.rescheduling import Rescheduling
from volcano_py.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano_py.scheduler.plugins.resourcequota import ResourceQuotas
from volcano_py.scheduler.plugins.sla import Sla
from volcano_py.scheduler.plugins.task_topology import TaskTopology
from volcano_py.scheduler.plugins.tdm import Tdm
from volcano_py.scheduler.plugins.usage import Usage

PLUGINS: dict[str, PluginBuilder] = {
    "binpack": Binpack,
    "capacity": Capacity,
    "cdp": Cdp,
    "conformance": Conformance,
    "deviceshare": Deviceshare,
    "drf": Drf,
    "extender": Extender,
    "gang": Gang,
    "network-topology-aware": NetworkTopologyAware,
    "nodegroup": NodeGroup,
    "nodeorder": NodeOrder,
    "numa-aware": NumaAware,
    "overcommit": Overcommit,
    "pdb": Pdb,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
    "rescheduling": Rescheduling,
    "resource-strategy-fit": ResourceStrategyFit,
    "resourcequota": ResourceQuotas,
    "sla": Sla,
    "task-topology": TaskTopology,
    "tdm": Tdm,
    "usage": Usage,
}
