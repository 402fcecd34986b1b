"""The imports for authors of plugins and actions. Everything else in the package may change without notice.

    from volcano_py.plugin import LOCAL, NodeView, Plugin, PluginArguments, Session, Task

docs/plugin-authors.md is the tutorial, docs/extension-points.md the reference.
"""

from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE, EVICT, Gradient
from volcano_py.scheduler.framework.extension_points.jobs import Invalid
from volcano_py.scheduler.framework.extension_points.victims import Basis, EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob as Job
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.plugin import Action, ActionArguments, Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode as Code
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, STATIC, Filter, Scope, Score
from volcano_py.scheduler.framework.search.node_view import Amounts, NodeView
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource

__all__ = [
    "ALLOCATE",
    "DOMAIN",
    "EVICT",
    "LOCAL",
    "STATIC",
    "Action",
    "ActionArguments",
    "Amounts",
    "Basis",
    "Code",
    "EvictionContext",
    "Filter",
    "Gradient",
    "Invalid",
    "Job",
    "NodeView",
    "Plugin",
    "PluginArguments",
    "Queue",
    "Reason",
    "Resource",
    "Scope",
    "Score",
    "Session",
    "Statement",
    "SubJob",
    "Task",
    "Vote",
]
