"""Serving the dashboard: the UI library's application behind the guard, in the loop of the caller."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from volcano_py.dashboard.guard import Guard
from volcano_py.dashboard.ui import not_found, pages
from volcano_py.dashboard.ui.site import Site

_STYLE = Path(__file__).with_name("style.css")
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="#d55e00" d="M12 4h8l9 24H3z"/>'
    '<path fill="#f0e442" d="M12 4h8l2 6-4-2-3 5-3-4-2 1z"/></svg>'
)


async def serve(
    site: Site, listening: socket.socket, hosts: Collection[str], token: str, ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` is called when it answers."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.add_head_html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>", shared=True)
    pages.register(site)
    not_found.register(site)
    ui.run_with(
        app,
        title="Volcano",
        favicon=_ICON,
        dark=None,
        language="en-US",
        binding_refresh_interval=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=5.0,
    )
    config = uvicorn.Config(
        Guard(app, hosts, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config, ready)
    await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
