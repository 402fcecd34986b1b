"""machine-groups: the machines of a group run only pods of that group. Not in Volcano.

The profile plugin MachineGroups for the pods of a session: the same rule (`rules.machine_groups`), labels and
arguments. The queue of a pod is the one of its job.
"""

from __future__ import annotations

from typing import Literal

from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules import machine_groups as rule


class MachineGroups(Plugin):
    """See `Arguments`."""

    name = "machine-groups"

    class Arguments(PluginArguments):
        nodeLabel: str = rule.LABEL
        """The label of nodes with the group that owns the node."""
        podLabel: str = rule.LABEL
        """The label of pods with the group for which they run; it has precedence over queue and namespace."""
        queues: dict[str, str] = {}
        """The group of the pods of each queue."""
        namespaces: dict[str, str] = {}
        """The group of the pods of each namespace."""
        spill: bool = False
        """Whether pods of a group may also run on nodes without a group."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        session.add_filters(_Filter(session, self.arguments))


class _Filter:
    """DOMAIN, because the group depends on the job and on a label that is configured: neither is part of a class."""

    name = "machine-groups"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [Reason(rule.TEXTS[code], FitCode.UNRESOLVABLE) for code in rule.GroupRejection]

    def __init__(self, session: Session, arguments: MachineGroups.Arguments) -> None:
        self._jobs = session.jobs
        self._membership = rule.Membership(arguments.podLabel, arguments.queues, arguments.namespaces)
        table, label = session.table, arguments.nodeLabel
        self._owners = session.cluster.derived(
            f"{self.name} {label}", table.generation, lambda: rule.NodeOwners(table.objects, label)
        )
        self._spill = arguments.spill
        self._codes: dict[str, Codes] = {}
        """By group."""

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        job = self._jobs.get(task.job)
        group = self._membership.group_of(task.labels, job.queue if job is not None else "", task.namespace)
        codes = self._codes.get(group)
        if codes is None:
            codes = self._codes[group] = self._owners.codes(group, self._spill)
        return codes
