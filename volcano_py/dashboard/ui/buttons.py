"""Pages and parts with buttons: the page of a job, and actions that the user's rights allow."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from volcano_py.dashboard import actions
from volcano_py.dashboard.actions import Action
from volcano_py.dashboard.explaining import ExplainError
from volcano_py.dashboard.job_page import JobPage
from volcano_py.dashboard.ui import shell
from volcano_py.dashboard.ui.draw_job import draw_answer, draw_groups, draw_job, draw_pods, draw_timeline
from volcano_py.dashboard.ui.live import Html
from volcano_py.dashboard.ui.markup import Markup, empty, joined, tag
from volcano_py.dashboard.ui.shell import Shell
from volcano_py.dashboard.ui.site import Site


def action(page: Shell, name: str, namespace: str, choose: Callable[[], Action | None]) -> None:
    """The button of the action that the object's state allows, if the user may; and what became of it."""
    site = page.site
    shown: Action | None = None

    async def carry_out() -> None:
        if shown is None:
            return
        wanted = shown
        if wanted.effect and not await _confirmed(f"{wanted.label} {wanted.rt.kind} {name}?", wanted):
            return
        button.disable()
        problem = await site.actions.carry_out(wanted, name, namespace)
        what = f"{wanted.rt.kind} {name}"
        text = problem or f"{what} {wanted.done}."
        outcome.show(tag("p", text, class_="outcome bad" if problem else "outcome", role="alert"))
        button.enable()

    with ui.element("div").classes("actions"):
        button = ui.button("", on_click=carry_out).props("outline no-caps").mark("action")
        button.set_visibility(False)
        outcome = Html(Markup())

    async def show() -> None:
        nonlocal shown
        found = choose()
        if found is not None and not await site.actions.allowed(found, namespace):
            found = None
        if found is not shown:
            shown = found
            button.set_visibility(found is not None)
            if found is not None:
                button.set_text(f"{found.label} {found.rt.kind}")

    ui.timer(2.0, show)


async def _confirmed(question: str, wanted: Action) -> bool:
    """Ask before an action that has effects which another action does not undo."""
    with ui.dialog() as dialog, ui.card().props('role="alertdialog"').classes("question"):
        Html(joined(tag("h2", question), tag("p", wanted.effect)))
        with ui.element("div").classes("choices"):
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps autofocus")
            ui.button(f"Yes, {wanted.label.lower()}", on_click=lambda: dialog.submit(True)).props("unelevated no-caps")
    answer = bool(await dialog)
    dialog.delete()
    return answer


def job(site: Site, namespace: str, name: str) -> None:
    """The page of a job."""
    key = f"{namespace}/{name}"
    with shell.page(site, name, "") as page:

        def part(draw: Callable[[JobPage], Markup]) -> Callable[[], Markup]:
            def one() -> Markup:
                found = site.models.job(key)
                return draw(found) if found is not None else Markup()

            return one

        def head() -> Markup:
            found = site.models.job(key)
            if found is None and not site.watches.loaded("jobs", "podgroups"):
                return empty("Loading …")
            if found is None:
                return empty(f"Job {key} does not exist, or was deleted.")
            return draw_job(found, site.now())

        page.section(head)
        action(page, name, namespace, lambda: _action_of(site, key))
        explain = _explanation(site, key)
        page.every(explain)
        page.section(
            part(lambda found: joined(tag("h2", "Groups"), draw_groups(found.groups)) if found.groups else Markup())
        )
        page.section(part(lambda found: joined(tag("h2", "Pods"), draw_pods(found, site.now()))))
        page.section(part(lambda found: joined(tag("h2", "Timeline"), draw_timeline(found.timeline))))


def _action_of(site: Site, key: str) -> Action | None:
    found = site.models.job(key)
    return actions.of_job(found.row.state) if found is not None and found.row.has_job else None


def _explanation(site: Site, key: str) -> Callable[[], None]:
    """The button that searches what would unblock a job that waits. Returns what shows it while the job waits."""

    async def search() -> None:
        found = site.models.job(key)
        if found is None:
            return
        button.disable()
        answer.show(tag("p", "Running cycles over a copy of the cluster …", class_="muted", role="status"))
        kind, name = "job" if found.row.has_job else "podgroup", found.row.name
        if "/" in name:  # a native group
            kind, _, name = name.partition("/")
        try:
            explained = await site.explainer.explain(kind, name, found.row.namespace)
            answer.show(draw_answer(explained))
        except ExplainError as error:
            answer.show(tag("p", str(error), class_="outcome bad", role="alert"))
        button.enable()

    with ui.element("div").classes("actions"):
        button = ui.button("What would unblock it?", on_click=search).props("unelevated no-caps").mark("explain")
        answer = Html(Markup())

    def follow() -> None:
        found = site.models.job(key)
        button.set_visibility(found is not None and found.row.state == "waiting")
        if found is None:
            answer.show(Markup())

    follow()
    return follow
