"""The plugins a configuration may name, one line each."""

from __future__ import annotations

from volcano_py.scheduler.framework.registry import PluginBuilder
from volcano_py.scheduler.plugins.binpack import Binpack
from volcano_py.scheduler.plugins.conformance import Conformance
from volcano_py.scheduler.plugins.drf import Drf
from volcano_py.scheduler.plugins.gang import Gang
from volcano_py.scheduler.plugins.nodeorder import NodeOrder
from volcano_py.scheduler.plugins.overcommit import Overcommit
from volcano_py.scheduler.plugins.predicates import Predicates
from volcano_py.scheduler.plugins.priority import Priority
from volcano_py.scheduler.plugins.proportion import Proportion
from volcano_py.scheduler.plugins.sla import Sla

PLUGINS: dict[str, PluginBuilder] = {
    "binpack": Binpack,
    "conformance": Conformance,
    "drf": Drf,
    "gang": Gang,
    "nodeorder": NodeOrder,
    "overcommit": Overcommit,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
    "sla": Sla,
}
