"""Who may reach the dashboard."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.dashboard.guard import Guard

TOKEN = "a-token-of-some-length"


class Answer:
    """What one request got."""

    def __init__(self, messages: list[Any]) -> None:
        start = messages[0]
        self.status = start.get("status") or start.get("code")
        self.headers = {name.decode(): value.decode() for name, value in start.get("headers", ())}
        self.body = b"".join(m.get("body", b"") for m in messages).decode()


async def ask(
    host: str = "localhost:8090", path: str = "/", query: str = "", token: str = "", kind: str = "http", **headers: str
) -> Answer:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the page"})

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    given = [(b"host", host.encode()), *((k.encode(), v.encode()) for k, v in headers.items())]
    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": given,
        "server": ("127.0.0.1", 8090),
    }
    await Guard(app, ("batch.example",), token)(scope, receive, send)
    return Answer(messages)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8090", "[::1]:8090", "10.1.2.3", "batch.example:8"]
)
async def test_addresses_and_allowed_names_are_let_through(host: str) -> None:
    assert (await ask(host)).body == "the page"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "", "localhost.evil.example", "[evil]:80"])
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_other_names_are_not_which_stops_dns_rebinding(host: str, kind: str) -> None:
    assert (await ask(host, kind=kind)).status == (403 if kind == "http" else 1008)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9", "http://localhost"])
async def test_other_sites_cannot_open_a_websocket(origin: str) -> None:
    assert (await ask(kind="websocket", origin=origin)).status == 1008
    assert (await ask(kind="websocket", origin="http://localhost:8090")).body == "the page"


async def test_a_token_is_exchanged_for_a_cookie() -> None:
    assert (await ask(token=TOKEN)).status == 401
    assert (await ask(token=TOKEN, query="token=wrong")).status == 401
    entered = await ask(token=TOKEN, path="/jobs", query=f"state=waiting&token={TOKEN}")
    assert (entered.status, entered.headers["location"]) == (303, "/jobs?state=waiting")
    assert "HttpOnly" in entered.headers["set-cookie"] and "SameSite=Strict" in entered.headers["set-cookie"]
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert (await ask(token=TOKEN, cookie=cookie)).body == "the page"
    assert (await ask(token=TOKEN, cookie=cookie, kind="websocket")).body == "the page"
    assert (await ask(token=TOKEN, cookie="volcano-dashboard-8090=wrong", kind="websocket")).status == 1008


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/\\evil.example/", "/%5Cevil.example/"),
        ("/jobs\r\nset-cookie: a=b", "/jobs%0D%0Aset-cookie%3A%20a%3Db"),
        ("/jobs/d/naïve", "/jobs/d/na%C3%AFve"),
    ],
)
async def test_the_path_of_an_address_stays_a_path(path: str, where: str) -> None:
    entered = await ask(token=TOKEN, path=path, query=f"token={TOKEN}")
    assert entered.headers["location"] == where


async def test_a_token_never_leads_to_another_site() -> None:
    entered = await ask(token=TOKEN, path="//evil.example/", query=f"token={TOKEN}")
    assert entered.headers["location"] == "/evil.example/"


async def test_answers_may_not_be_framed_and_load_nothing_from_elsewhere() -> None:
    for answer in (await ask(), await ask("evil.example")):
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
