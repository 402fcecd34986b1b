"""The imports for authors of plugins for profiles. Everything else in the package may change without notice.

    from volcano_py.profile_plugin import Filter, NodeInfo, PodInfo, Status, CycleState, unschedulable

docs/profiles.md is the guide.
"""

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, STATIC
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import (
    GROUPS,
    NODES,
    OBJECTS,
    PODS,
    Interest,
    Kind,
)
from volcano_py.scheduler.profiles.plugin_api.events import (
    ActionType as Action,
)
from volcano_py.scheduler.profiles.plugin_api.events import (
    ClusterEvent as Event,
)
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Binder as Bind,
)
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Filter,
    NoArguments,
    Observer,
    Permit,
    PodGroupPostFilter,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueueSort,
    Reserve,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    ProfilePlugin as Plugin,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle, WaitingPod
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.normalizing import to_highest
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult, RejectedGroup
from volcano_py.scheduler.profiles.plugin_api.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)

__all__ = [
    "DOMAIN",
    "GROUPS",
    "LOCAL",
    "NODES",
    "OBJECTS",
    "PODS",
    "SKIP",
    "STATIC",
    "SUCCESS",
    "Action",
    "AnyColumns",
    "Bind",
    "Code",
    "Columns",
    "CycleState",
    "Event",
    "Filter",
    "Handle",
    "Interest",
    "Kind",
    "NoArguments",
    "NodeInfo",
    "ObjectKind",
    "Observer",
    "Permit",
    "Plugin",
    "PodGroupPostFilter",
    "PodGroupPostFilterResult",
    "PodInfo",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "QueueSort",
    "RejectedGroup",
    "Reserve",
    "Score",
    "Status",
    "WaitingPod",
    "error",
    "to_highest",
    "unresolvable",
    "unschedulable",
]
