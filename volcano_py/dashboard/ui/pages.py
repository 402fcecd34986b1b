"""The pages: each puts drawn models and controls into the frame of `shell`."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import orjson
from nicegui import ui

from volcano_py.dashboard import actions
from volcano_py.dashboard.jobs import ORDERS, STATES, Filter
from volcano_py.dashboard.ui import buttons, shell
from volcano_py.dashboard.ui.draw_cycles import draw_cycles, tile
from volcano_py.dashboard.ui.draw_evictions import draw_evictions
from volcano_py.dashboard.ui.draw_jobs import draw_jobs
from volcano_py.dashboard.ui.draw_nodes import draw_heat, draw_node
from volcano_py.dashboard.ui.draw_queues import draw_queues, short
from volcano_py.dashboard.ui.draw_reservations import draw_reservations
from volcano_py.dashboard.ui.draw_shares import draw_shares
from volcano_py.dashboard.ui.live import Html, Section
from volcano_py.dashboard.ui.markup import Markup, empty, joined, link, tag
from volcano_py.dashboard.ui.site import Site

_ANY = "All"


def register(site: Site) -> None:
    """Add all pages of a dashboard to the UI library's application."""
    # parameters of the address are read from the request: all are text, and a wrong one must not be an error page
    ui.page("/")(lambda: queues(site))
    ui.page("/queues/{name}")(lambda name: queue(site, name))
    ui.page("/jobs")(lambda: jobs(site))
    ui.page("/jobs/{namespace}/{name}")(lambda namespace, name: buttons.job(site, namespace, name))
    ui.page("/jobs/{namespace}/{kind}/{name}")(
        lambda namespace, kind, name: buttons.job(site, namespace, f"{kind}/{name}")
    )
    ui.page("/nodes")(lambda: nodes(site))
    ui.page("/nodes/{name}")(lambda name: node(site, name))
    ui.page("/reservations")(lambda: reservations(site))
    ui.page("/shares")(lambda: shares(site))
    ui.page("/evictions")(lambda: evictions(site))
    ui.page("/cycles")(lambda: cycles(site))


def _asked(name: str) -> str:
    request = ui.context.client.request
    return str(request.query_params.get(name, "")) if request is not None else ""


def _remember(**chosen: str) -> None:
    """Put what is chosen into the address, so that it can be shared and survives a reload."""
    query = urlencode({key: value for key, value in chosen.items() if value})
    ui.run_javascript(
        f"history.replaceState(null, '', location.pathname + {orjson.dumps('?' + query if query else '').decode()})"
    )


def _if_listed(site: Site, kind: str, draw: Callable[[], Markup]) -> Callable[[], Markup]:
    """What `draw` makes; for a kind that may not be listed, or does not exist, the reason why it shows nothing."""

    def one() -> Markup:
        if not site.watches.loaded(kind):
            return empty("Loading …")
        if site.watches.may_list(kind) or site.watches.objects(kind):
            return draw()
        return empty(site.watches.why_not(kind), "The top of the page shows how to change that.")

    return one


def queues(site: Site) -> None:
    """The tree of queues, and the figures of the whole cluster."""
    with shell.page(site, "Queues", "/") as page:
        page.section(lambda: _figures(site))
        page.section(_if_listed(site, "queues", lambda: draw_queues(site.models.queues())))


def _figures(site: Site) -> Markup:
    counts = site.models.counts()
    total = site.models.queues().total
    tiles = [tag("a", tile(f"jobs {state}", f"{counts[state]:,}"), href=f"/jobs?state={state}") for state in STATES]
    tiles += [tile(f"{short(r)} of all nodes", amount) for r, amount in total.items()]
    return tag("div", *tiles, class_="tiles")


def queue(site: Site, name: str) -> None:
    """One queue with those below it, and its actions."""
    with shell.page(site, f"Queue {name}", "") as page:

        def draw() -> Markup:
            found = site.models.queues()
            rows = [row for row in found.rows if row.name == name]
            if not rows:
                return empty(f"Queue {name} does not exist, or was deleted.")
            start = found.rows.index(rows[0])
            end = next(
                (i for i in range(start + 1, len(found.rows)) if found.rows[i].depth <= rows[0].depth), len(found.rows)
            )
            shown = tuple(row._replace(depth=row.depth - rows[0].depth) for row in found.rows[start:end])
            return joined(
                tag("p", link("The jobs of this queue", "jobs", queue=name)),
                draw_queues(found._replace(rows=shown, problems=())),
            )

        page.section(draw)
        buttons.action(
            page,
            name,
            "",
            lambda: next(
                (actions.of_queue(name, row.state) for row in site.models.queues().rows if row.name == name), None
            ),
        )


def jobs(site: Site) -> None:
    """The list of jobs, with a filter."""
    state = _asked("state") if _asked("state") in STATES else ""
    chosen = Filter(_asked("text"), state, _asked("queue"), _asked("order") or ORDERS[0])
    with shell.page(site, "Jobs", "/jobs") as page:
        section: Section

        def change(**fields: object) -> None:
            nonlocal chosen
            chosen = chosen._replace(**{"page": 0, **fields})  # type: ignore[arg-type]
            section.draw()
            show_counts()
            order = "" if chosen.order == ORDERS[0] else chosen.order
            _remember(text=chosen.text, state=chosen.state, queue=chosen.queue, order=order)

        with ui.element("div").classes("filter").props('role="search"'):
            ui.input("Filter", value=chosen.text, on_change=lambda e: change(text=e.value or "")).props(
                'dense outlined clearable debounce=250 type=search hint="name, namespace, queue or reason"'
            ).classes("text")
            ui.select([_ANY, *STATES], value=state or _ANY, label="State").props("dense outlined").on_value_change(
                lambda e: change(state="" if e.value == _ANY else e.value)
            )
            names = [_ANY, *sorted({*site.models.jobs(Filter()).queues, *filter(None, [chosen.queue])})]
            ui.select(names, value=chosen.queue or _ANY, label="Queue").props("dense outlined").on_value_change(
                lambda e: change(queue="" if e.value == _ANY else e.value)
            )
            order = chosen.order if chosen.order in ORDERS else ORDERS[0]
            ui.select(list(ORDERS), value=order, label="Order").props("dense outlined").on_value_change(
                lambda e: change(order=e.value)
            )
        section = page.section(_if_listed(site, "podgroups", lambda: draw_jobs(site.models.jobs(chosen), site.now())))
        with ui.element("div").classes("pager"):
            back = ui.button("Previous", on_click=lambda: change(page=chosen.page - 1)).props("flat no-caps dense")
            count = Html(Markup())
            on = ui.button("Next", on_click=lambda: change(page=chosen.page + 1)).props("flat no-caps dense")

        def show_counts() -> None:
            found = site.models.jobs(chosen)
            of = f"{found.found:,} jobs" if found.found != 1 else "1 job"
            count.show(tag("span", f"Page {found.page + 1} of {found.pages:,}, {of}", role="status"))
            back.set_enabled(found.page > 0)
            on.set_enabled(found.page + 1 < found.pages)

        show_counts()
        revision = -1

        def follow() -> None:
            nonlocal revision
            if revision != site.models.revision:
                revision = site.models.revision
                show_counts()

        page.every(follow)


def nodes(site: Site) -> None:
    """The heat map."""
    resource, text = _asked("resource"), _asked("text")
    with shell.page(site, "Nodes", "/nodes") as page:
        section: Section

        def change() -> None:
            section.draw()
            _remember(resource=resource, text=text)

        def choose(value: str) -> None:
            nonlocal resource
            resource = value
            change()

        def search(value: str) -> None:
            nonlocal text
            text = value
            change()

        with ui.element("div").classes("filter").props('role="search"'):
            found = site.models.heat_map(resource, "")
            names = {r: short(r) for r in found.resources} or {"cpu": "cpu"}
            ui.toggle(names, value=found.resource, on_change=lambda e: choose(e.value)).props(
                'no-caps dense aria-label="Resource"'
            )
            ui.input("Name contains", value=text, on_change=lambda e: search(e.value or "")).props(
                "dense outlined clearable debounce=250 type=search"
            ).classes("text")
        section = page.section(_if_listed(site, "nodes", lambda: draw_heat(site.models.heat_map(resource, text))))


def node(site: Site, name: str) -> None:
    """One node."""
    with shell.page(site, f"Node {name}", "") as page:

        def draw() -> Markup:
            found = site.models.node(name)
            return draw_node(found, site.now()) if found is not None else empty(f"Node {name} does not exist.")

        page.section(draw)


def reservations(site: Site) -> None:
    """The timeline, Reservations, and the jobs for which nodes are held."""

    def draw() -> Markup:
        return draw_reservations(site.models.reservations(), site.now(), site.watches.missing("reservations"))

    with shell.page(site, "Reservations", "/reservations") as page:
        page.section(_if_listed(site, "podgroups", draw))


async def shares(site: Site) -> None:
    """Usage against share; the stored usage is read while the page is open."""

    def drawn() -> Markup:
        return draw_shares(site.models.shares(site.usage), site.usage.problem, site.now())

    with shell.page(site, "Shares", "/shares"):
        await site.usage.refresh()
        html = Html(drawn())

        async def refresh() -> None:
            await site.usage.refresh()
            html.show(drawn())

        ui.timer(2.0, refresh)


def evictions(site: Site) -> None:
    """The recent evictions."""
    with shell.page(site, "Evictions", "/evictions") as page:
        page.section(_if_listed(site, "evictions", lambda: draw_evictions(site.models.evictions(), site.now())))


async def cycles(site: Site) -> None:
    """Cycle times; the metrics are read while the page is open."""
    with shell.page(site, "Cycles", "/cycles"):
        await site.endpoint.refresh()
        html = Html(draw_cycles(site.endpoint.history.page(), site.endpoint.problem))

        async def refresh() -> None:
            await site.endpoint.refresh()
            html.show(draw_cycles(site.endpoint.history.page(), site.endpoint.problem))

        ui.timer(2.0, refresh)
