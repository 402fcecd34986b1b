"""The answer to an address that is no page: a page with the navigation, and status 404."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import HTTPException
from nicegui import Client, app, ui

from volcano_py.dashboard.ui import shell
from volcano_py.dashboard.ui.live import Html
from volcano_py.dashboard.ui.markup import empty
from volcano_py.dashboard.ui.site import Site

_LIBRARY = "/_nicegui"
"""Where the UI library serves its own files."""


def register(site: Site) -> None:
    """Replace the UI library's page, which has no way back."""

    async def not_found(request: Request, exception: Exception) -> Response:
        path = request.url.path
        if path.startswith(_LIBRARY) or request.method != "GET":
            return await http_exception_handler(request, HTTPException(404, "Not Found"))
        with Client(ui.page(""), request=request) as client, shell.page(site, "Page not found", ""):
            Html(empty(f"There is no page {path}.", "The pages are at the top."))
        return client.build_response(request, 404)

    app.exception_handler(404)(not_found)
