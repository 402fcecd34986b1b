"""`explain` and `what_if`: why an object waits, and what would change with more nodes, other jobs or another
configuration. Both read the cluster with the user's permissions, and decide as the scheduler does, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from volcano_py.client import html
from volcano_py.client.errors import Invalid, NotFound, translating

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.simulate.snapshot import Snapshot

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """One reason why an object waits. `code` is one of docs/reasons.md."""

    code: str
    sentence: str
    remedy: str = ""


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`. `suggestions`: changes after each of which a simulated cycle starts the job."""

    subject: str
    state: str
    verdict: str
    reasons: tuple[Reason, ...] = ()
    suggestions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.subject} is {self.state}", self.verdict]
        lines += [f"- {one.code}: {one.sentence}" for one in self.reasons]
        if self.suggestions:
            lines += ["To unblock it:", *(f"- {text}" for text in self.suggestions)]
        return "\n".join([*lines, *(f"note: {text}" for text in self.notes)])

    def _repr_html_(self) -> str:
        parts = [f"<b>{escape(self.subject)}</b> is {escape(self.state)}", html.paragraph(self.verdict)]
        if self.reasons:
            parts.append(html.listed(f"{html.code(one.code)}: {escape(one.sentence)}" for one in self.reasons))
        if self.suggestions:
            parts += ["<b>To unblock it</b>", html.listed(escape(text) for text in self.suggestions)]
        return "".join([*parts, *(html.paragraph(f"note: {text}") for text in self.notes)])


@dataclass(frozen=True)
class Change:
    """What is different for one job: `change` is a phrase such as `starts` or `is evicted`."""

    job: str
    change: str
    before: str
    after: str


@dataclass(frozen=True)
class WhatIf:
    """The answer of `what_if`. `starts`: the jobs that start with the changes, and not without them."""

    changes: tuple[Change, ...]
    started_before: int
    started_after: int
    evicted_before: int
    evicted_after: int
    notes: tuple[str, ...] = ()
    starts: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"{c.job} {c.change}: {' → '.join(filter(None, (c.before, c.after)))}" for c in self.changes]
        lines = lines or ["no difference"]
        lines.append(
            f"started jobs {self.started_before} → {self.started_after}, "
            f"evicted pods {self.evicted_before} → {self.evicted_after}"
        )
        return "\n".join([*lines, *(f"note: {text}" for text in self.notes)])

    def _repr_html_(self) -> str:
        rows = [(html.code(c.job), escape(c.change), escape(c.before), escape(c.after)) for c in self.changes]
        shown = html.table(("job", "change", "before", "after"), rows) if rows else html.paragraph("no difference")
        last = str(self).splitlines()[len(self.changes) or 1 :]
        return shown + "".join(html.paragraph(text) for text in last)


async def explain(client: Client, kind: str, name: str, namespace: str, scheduler: str, lease: str) -> Explanation:
    """Why an object waits. Raises ClientError."""
    from volcano_py.cli.explain_answer import answer
    from volcano_py.cli.explain_facts import KINDS, Missing, read_facts
    from volcano_py.scheduler.framework.config import ConfigurationError

    if kind not in KINDS:
        raise Invalid(f"kind is {kind!r}", object=name, field="kind", remedy=f"use one of {', '.join(KINDS)}")
    about = f"{kind} {namespace}/{name}" if kind != "queue" else f"queue {name}"
    try:
        with translating(about, client):
            facts = await read_facts(client, kind, name, namespace, time.time(), scheduler, lease)
        found = await asyncio.to_thread(answer, facts, scheduler, True)
    except Missing:
        raise NotFound(
            f"{about} does not exist", object=about, remedy="list existing ones with client.jobs()"
        ) from None
    except ConfigurationError as error:
        raise Invalid(f"the scheduler's configuration is invalid: {error}", object=about, remedy=_CONFIGURE) from None
    return Explanation(
        found.subject,
        found.state,
        found.verdict,
        tuple(Reason(b.code, b.sentence, b.remedy) for b in found.blockers),
        tuple(one.text for one in found.unblock),
        tuple(found.notes),
    )


_CONFIGURE = "correct it; `volcano-py config check FILE` names the line"


async def what_if(
    client: Client,
    jobs: Sequence[Manifest],
    add_nodes: Sequence[str],
    configuration: str | None,
    cycles: int,
    scheduler: str,
) -> WhatIf:
    """What would change. Raises ClientError."""
    from volcano_py.simulate.capture import capture

    with translating("what_if", client):
        snapshot = await capture(client, time.time(), scheduler_names=(scheduler,))
    return await asyncio.to_thread(_compared, snapshot, jobs, add_nodes, configuration, cycles)


def _compared(
    snapshot: Snapshot, jobs: Sequence[Manifest], add_nodes: Sequence[str], text: str | None, cycles: int
) -> WhatIf:
    from volcano_py.scheduler.framework.config import ConfigurationError
    from volcano_py.simulate.batch import configuration
    from volcano_py.simulate.manifests import ManifestError
    from volcano_py.simulate.snapshot import summary
    from volcano_py.simulate.what_if import differences, nodes_to_add, run, simulation_of

    try:
        old = configuration(snapshot.configuration_text, False)
        new = old if text is None else configuration(text, False)
    except ConfigurationError as error:
        raise Invalid(str(error), object="what_if", field="configuration", remedy=_CONFIGURE) from None
    try:
        nodes = [node for shape in add_nodes for node in nodes_to_add(shape, snapshot)]
    except ManifestError as error:
        raise Invalid(
            str(error), object="what_if", field="add_nodes", remedy='write "2xcpu=32,memory=256Gi" or "2xNODE"'
        ) from None
    try:
        after_simulation = simulation_of(snapshot, [*nodes, *jobs])
    except ManifestError as error:
        raise Invalid(str(error), object="what_if", field="jobs", remedy="correct the job") from None
    before, after = run(simulation_of(snapshot), old, cycles), run(after_simulation, new, cycles)
    titles = before.titles | after.titles
    changes = tuple(Change(titles.get(d.job, d.job), d.change, d.before, d.after) for d in differences(before, after))
    faults = [f"plugin fault: {fault}" for fault in dict.fromkeys((*before.faults, *after.faults))]
    return WhatIf(
        changes,
        len(before.started),
        len(after.started),
        sum(before.evicted.values()),
        sum(after.evicted.values()),
        (*(f"not read: {one}" for one in summary(snapshot.unread)), *faults),
        tuple(c.job for c in changes if c.change == "starts"),
    )
