"""Draws the page of a job: facts, reason, roles, pods, timeline; and the answer about what would unblock it."""

from __future__ import annotations

from volcano_py.cli.explain_answer import Answer
from volcano_py.dashboard.job_page import JobPage, Moment, PodRow
from volcano_py.dashboard.jobs import seconds
from volcano_py.dashboard.ui.draw_jobs import phase_badge
from volcano_py.dashboard.ui.markup import Child, Markup, badge, empty, joined, link, table, tag
from volcano_py.dashboard.ui.times import age, clock, duration
from volcano_py.scheduler.explain.groups.group_rows import GroupRow

PHASES = {"Running": "good", "Succeeded": "done", "Pending": "wait", "Terminating": "wait"}

STATES = {"placed": "good", "waits": "wait", "incomplete": "bad"}


def draw_job(page: JobPage, now: float) -> Markup:
    """Facts and reason."""
    row = page.row
    facts: list[tuple[str, Child]] = [("Age", age(row.created, now))]
    if row.state == "waiting":
        facts.append(("Waits", duration(now - row.created)))
    elif row.started:
        facts.append(("Waited", duration(row.started - row.created)))
        facts.append(("Ran" if row.ended else "Runs for", duration((row.ended or now) - row.started)))
    facts += [(name, link(value, "queues", value) if name == "Queue" else value) for name, value in page.facts]
    listed = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]
    return joined(tag("p", phase_badge(row)), tag("dl", *listed, class_="facts-list"), _reason(page))


def _reason(page: JobPage) -> Markup | None:
    row = page.row
    if row.state != "waiting":
        return None
    if not row.why:
        return tag("div", tag("p", "The scheduler has not reported a reason yet."), class_="reason")
    return tag(
        "div",
        tag("p", tag("b", "Why it waits"), tag("code", row.code) if row.code else None, class_="reason-head"),
        tag("p", row.why, class_="sentence"),
        tag("p", page.remedy, class_="muted") if page.remedy else None,
        class_="reason",
    )


def draw_groups(groups: tuple[GroupRow, ...]) -> Markup:
    """The tree of native groups: each below its parent."""
    rows: list[list[Child]] = [
        [
            tag("span", row.name, style=f"padding-left: {1.5 * row.depth}em", title=row.kind),
            row.counts,
            badge(row.state, STATES[row.state]),
            f"{row.topology_key}={row.domain}" if row.domain else row.topology_key,
        ]
        for row in groups
    ]
    return table("Groups", ["Group", "Has nodes", "State", "Domain"], rows)


def draw_pods(page: JobPage, now: float) -> Markup:
    """Roles and pods."""
    roles: list[list[Child]] = [
        [role.name, str(role.replicas), ", ".join(f"{n} {phase}" for phase, n in role.phases) or "no pods yet"]
        for role in page.roles
    ]
    parts = [table("Roles", ["Role", "Replicas", "Pods"], roles, frozenset({1}))] if roles else []
    if page.pods is None:
        return joined(*parts, empty("You may not list pods."))
    if not page.pods:
        hint = "The controller creates them once the job is admitted." if page.row.state == "waiting" else ""
        return joined(*parts, empty("The job has no pods now.", hint))
    pods = [pod_cells(p, now) for p in page.pods]
    parts.append(table("Pods", ["Pod", "Phase", "Node", "Restarts", "Age", "Waits for"], pods, frozenset({3, 4})))
    if page.hidden:
        parts.append(tag("p", f"{page.hidden} further pods are not listed.", class_="muted"))
    return joined(*parts)


def pod_cells(p: PodRow, now: float) -> list[Child]:
    """The cells of a pod."""
    return [
        p.name,
        badge(p.phase, PHASES.get(p.phase, "bad")),
        link(p.node, "nodes", p.node) if p.node else tag("span", "none", class_="muted"),
        str(p.restarts),
        age(p.created, now),
        tag("span", p.why, class_="why", title=p.why) if p.why else "",
    ]


def draw_timeline(timeline: tuple[Moment, ...]) -> Markup:
    """What happened, the newest entry first."""
    if not timeline:
        return empty("Nothing has happened yet.")
    entries = [tag("li", tag("time", clock(m.time)), tag("span", m.what)) for m in reversed(timeline)]
    return tag("ol", *entries, class_="timeline")


def draw_answer(found: Answer) -> Markup:
    """Blockers, and what would unblock the job."""
    parts = [tag("p", found.verdict, class_="sentence")]
    if len(found.blockers) > 1:  # a single one is the verdict
        rows: list[list[Child]] = [
            [str(i), tag("code", b.code), b.sentence, b.remedy] for i, b in enumerate(found.blockers, 1)
        ]
        parts.append(table("Blockers", ["", "Reason", "Sentence", "Remedy"], rows, frozenset({0})))
    if found.unblock:
        parts.append(tag("h3", "Each of these would let it start"))
        parts.append(tag("ul", *(tag("li", h.text) for h in found.unblock), class_="helps"))
    elif found.blockers:
        parts.append(tag("p", "No single change that was tried lets it start.", class_="muted"))
    parts += [tag("p", note, class_="muted") for note in found.notes]
    return tag("div", *parts, class_="answer")


def moments(found: Answer) -> tuple[Moment, ...]:
    """The timeline of an answer, which has Events, too."""
    return tuple(Moment(seconds(m.time), m.what) for m in found.timeline)
