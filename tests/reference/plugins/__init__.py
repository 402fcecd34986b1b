"""Plugins by name: functions of a session and the plugin's arguments, which register callbacks."""

from tests.reference.plugins.binpack import binpack
from tests.reference.plugins.capacity import capacity
from tests.reference.plugins.cdp import cdp
from tests.reference.plugins.conformance import conformance
from tests.reference.plugins.deviceshare import deviceshare
from tests.reference.plugins.drf import drf
from tests.reference.plugins.gang import gang
from tests.reference.plugins.network_topology_aware import network_topology_aware
from tests.reference.plugins.nodegroup import nodegroup
from tests.reference.plugins.nodeorder import nodeorder
from tests.reference.plugins.numa_aware import numa_aware
from tests.reference.plugins.overcommit import overcommit
from tests.reference.plugins.pdb import pdb
from tests.reference.plugins.predicates import predicates
from tests.reference.plugins.priority import priority
from tests.reference.plugins.proportion import proportion
from tests.reference.plugins.resource_strategy_fit import resource_strategy_fit
from tests.reference.plugins.resourcequota import resourcequota
from tests.reference.plugins.sla import sla
from tests.reference.plugins.task_topology import task_topology
from tests.reference.plugins.tdm import tdm
from tests.reference.plugins.usage import usage

PLUGINS = {
    "priority": priority,
    "gang": gang,
    "conformance": conformance,
    "overcommit": overcommit,
    "drf": drf,
    "predicates": predicates,
    "proportion": proportion,
    "nodeorder": nodeorder,
    "binpack": binpack,
    "capacity": capacity,
    "pdb": pdb,
    "cdp": cdp,
    "sla": sla,
    "resourcequota": resourcequota,
    "nodegroup": nodegroup,
    "network-topology-aware": network_topology_aware,
    "resource-strategy-fit": resource_strategy_fit,
    "task-topology": task_topology,
    "tdm": tdm,
    "usage": usage,
    "numa-aware": numa_aware,
    "deviceshare": deviceshare,
}
