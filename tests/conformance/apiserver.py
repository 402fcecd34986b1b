"""Replay recorded stories of a real API server against the sandbox, and count the requests that are answered alike.

`python -m tests.conformance.apiserver --data FOLDER [--story NAME …] [-v]`: FOLDER holds `http/*.json`. A story runs
in a namespace of its own; stories share one sandbox. Without -v only counts are printed, with it every difference.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import copy
import json
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp import web
from yarl import URL

from tests.conformance.outcome import DEVIATION, FAIL, PASS, Outcome
from tests.conformance.projections import at, filtered, projected
from tests.sandbox.matching import Context, match, words_agree
from volcano_py.kube import certificates
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.manager import Options

AREA = "apiserver"
UNTIL_SECONDS = 10.0
QUIET_SECONDS = 2.0
EVENT_SECONDS = 6.0
ADMIN = User("admin", ("system:masters", "system:authenticated"), "admin")
USERS = {
    "token-alice": User("alice", ("dev", "system:authenticated"), "alice-uid"),
    "token-bob": User("bob", ("system:authenticated",), "bob-uid"),
}


class WebhookServer:
    """The admission server of a story: answers by path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.certificate = certificates.make(("127.0.0.1", "localhost"))
        self.answers: dict[str, Any] = {}
        self.calls: list[dict[str, Any]] = []
        self.port = 0
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._answer))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.certificate.context())
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        raw = await http.read()
        with contextlib.suppress(ValueError):
            call = {
                "path": http.raw_path,
                "contentType": http.headers.get("Content-Type", ""),
                "accept": http.headers.get("Accept", ""),
                "review": json.loads(raw),
            }
            self.calls.append(call)
        answer = self.answers.get(http.path)
        if answer is None:
            return web.Response(status=404, text="404 page not found\n")
        if answer.get("delay"):
            await asyncio.sleep(answer["delay"])
        if "http" in answer or "text" in answer:
            return web.Response(status=answer.get("http", 200), text=answer.get("text", ""))
        review = json.loads(raw)
        response = dict(answer["response"])
        response.setdefault("uid", review["request"]["uid"])
        if not isinstance(response.get("patch", ""), str):
            response["patch"] = base64.b64encode(json.dumps(response["patch"]).encode()).decode()
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.json_response(body)


class Stream:
    """An open watch: its events as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        buffer = b""
        try:
            async for chunk in self.response.content.iter_any():
                buffer += chunk
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    self._put(line)
            if buffer.strip():
                self._put(buffer)
        except (aiohttp.ClientError, asyncio.CancelledError):
            pass
        self.events.put_nowait(None)

    def _put(self, line: bytes) -> None:
        if line.strip():
            event = json.loads(line)
            if event.get("type") != "BOOKMARK" or b"k8s.io/initial-events-end" in line:
                self.events.put_nowait(event)

    async def take(self, count: int, until_end: bool) -> tuple[list[Any], bool]:
        out: list[Any] = []
        deadline = time.monotonic() + EVENT_SECONDS
        ended = False
        while len(out) < count or until_end:
            try:
                event = await asyncio.wait_for(self.events.get(), max(deadline - time.monotonic(), 0.01))
            except TimeoutError:
                break
            if event is None:
                ended = True
                break
            out.append(event)
        return out, ended

    async def close(self) -> None:
        self.task.cancel()
        self.response.close()


class Result(NamedTuple):
    """How one request or one collection of events came out; `deviation` says why differences are meant."""

    step: int
    title: str
    problems: list[str]
    deviation: str = ""


class Story:
    """One story against one sandbox."""

    def __init__(self, data: dict[str, Any], sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.data = data
        self.sandbox = sandbox
        self.session = session
        self.context = Context(keep_managed_fields=bool(data.get("keepManagedFields")))
        self.answers: dict[str, Any] = {}
        self.streams: dict[str, Stream] = {}
        self.webhooks: WebhookServer | None = None
        self.results: list[Result] = []

    async def run(self) -> list[Result]:
        """One result for every request and every collection of events."""
        ns = "story-" + secrets.token_hex(3)
        self.context.variables["ns"] = ns
        if self.data.get("namespace"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}
            await self._call({"method": "POST", "path": "/api/v1/namespaces", "body": body})
            await self._until_quiet()
        try:
            for index, step in enumerate(self.data["steps"]):
                await self._step(index, step)
        finally:
            for stream in self.streams.values():
                await stream.close()
            if self.webhooks is not None:
                await self.webhooks.stop()
            if self.data.get("namespace"):
                await self._call({"method": "DELETE", "path": f"/api/v1/namespaces/{ns}"})
                await self._drop_cluster_objects(ns)
        return self.results

    async def _until_quiet(self) -> None:
        """Wait until no controller writes: some answers have the latest version of the whole store."""
        deadline = time.monotonic() + QUIET_SECONDS
        before = ""
        while time.monotonic() < deadline:
            _, _, listing, _ = await self._call({"method": "GET", "path": "/api/v1/namespaces"})
            version = listing["metadata"]["resourceVersion"]
            if version == before:
                return
            before = version
            await asyncio.sleep(0.05)

    async def _drop_cluster_objects(self, ns: str) -> None:
        """Configurations that a story left behind would reach into the next one."""
        group = "/apis/admissionregistration.k8s.io/v1"
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            _, _, listing, _ = await self._call({"method": "GET", "path": f"{group}/{plural}"})
            for item in (listing or {}).get("items", []):
                if ns in item["metadata"]["name"]:
                    path = f"{group}/{plural}/{item['metadata']['name']}"
                    await self._call({"method": "DELETE", "path": path})

    async def _step(self, index: int, step: dict[str, Any]) -> None:
        if "webhookServer" in step:
            if self.webhooks is None:
                self.webhooks = WebhookServer()
                await self.webhooks.start()
            self.webhooks.answers = step["webhookServer"]
            self.webhooks.calls = []
            self.context.variables["webhook"] = f"127.0.0.1:{self.webhooks.port}"
            authority = base64.b64encode(self.webhooks.certificate.authority).decode()
            self.context.variables["webhookCA"] = authority
        elif "received" in step:
            calls = self.webhooks.calls if self.webhooks else []
            problems = match(step["received"], calls, self.context, "", tuple(step.get("unstable", ())))
            if self.webhooks:
                self.webhooks.calls = []
            self.results.append(Result(index, "received", problems))
        elif "collect" in step:
            await self._collect(index, step)
        elif "watch" in step:
            await self._watch(index, step)
        elif "request" in step:
            await self._request(index, step)
        # "sleep": time that caches of the real server need; ours has none

    # --- requests ----------------------------------------------------------------------------------------------------

    def _url(self, request: dict[str, Any]) -> URL:
        path = quote(self._text(request["path"]), safe="/:;@!$&'()*+,=~%")
        query = {key: self._text(str(value)) for key, value in (request.get("query") or {}).items()}
        text = self.sandbox.url + path + ("?" + urlencode(query) if query else "")
        return URL(text, encoded=True)

    def _text(self, text: str) -> str:
        text = self.context.filled(text)
        for name, answer in self.answers.items():
            while True:
                start = text.find("${" + name + ":")
                if start < 0:
                    break
                end = text.index("}", start)
                text = text[:start] + str(at(answer, text[start + len(name) + 3 : end])) + text[end + 1 :]
        return text

    def _headers(self, request: dict[str, Any]) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "recorder"}
        user = request.get("user", "admin")
        token = {"admin": self.sandbox.token, "bad": "nobody-knows-this"}.get(user, f"token-{user}")
        if user.startswith("token:"):
            token = self._text(user.removeprefix("token:"))
        if user != "none":
            headers["Authorization"] = f"Bearer {token}"
        headers.update({key: self._text(value) for key, value in (request.get("headers") or {}).items()})
        return headers

    def _body(self, request: dict[str, Any], headers: dict[str, str]) -> bytes | None:
        if "bodyText" in request:
            headers.setdefault("Content-Type", "application/json")
            return self._text(request["bodyText"]).encode()
        if "body" in request:
            headers.setdefault("Content-Type", "application/json")
            return self._text(json.dumps(request["body"])).encode()
        return None

    async def _call(self, request: dict[str, Any]) -> tuple[int, Any, Any, str]:
        """(status, headers, JSON body or None, text)."""
        headers = self._headers(request)
        body = self._body(request, headers)
        async with self.session.request(request["method"], self._url(request), data=body, headers=headers) as answer:
            text = (await answer.read()).decode("utf-8", "replace")
            value = None
            if "yaml" not in answer.headers.get("Content-Type", "") and text[:1] in "{[":
                with contextlib.suppress(ValueError):
                    value = json.loads(text)
            return answer.status, answer.headers, value, text

    async def _request(self, index: int, step: dict[str, Any]) -> None:
        request, wanted = step["request"], step["response"]
        deadline = time.monotonic() + UNTIL_SECONDS
        pause = 0.02
        while True:
            try:
                status, headers, value, text = await self._call(request)
            except (aiohttp.ClientError, TimeoutError) as error:
                problem = f"no answer: {type(error).__name__}: {error}"
                self.results.append(Result(index, _title(request), [problem]))
                return
            if "until" not in step or _holds(step["until"], status, value, self) or time.monotonic() > deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.3)
        if step.get("id"):
            self.answers[step["id"]] = value
        problems = self._compare(step, wanted, status, headers, value, text)
        why = ""
        for deviation in DEVIATIONS if problems else ():
            loosened = {**wanted, "body": deviation.without(wanted.get("body"))}
            if not self._compare(step, loosened, status, headers, deviation.without(value), text):
                why = deviation.why
        self.results.append(Result(index, _title(request), problems, why))

    def _compare(
        self, step: dict[str, Any], wanted: dict[str, Any], status: int, headers: Any, value: Any, text: str
    ) -> list[str]:
        unstable = tuple(step.get("unstable", ()))
        out: list[str] = []
        if status != wanted["status"]:
            out.append(f"/status: expected {wanted['status']}, got {status}: {text[:300]}")
        if "contentType" in wanted and headers.get("Content-Type") != wanted["contentType"]:
            out.append(f"/contentType: expected {wanted['contentType']}, got {headers.get('Content-Type')}")
        warnings = headers.getall("Warning", [])
        if "/warnings" not in unstable:
            expected = wanted.get("warnings", [])
            pairs = zip(expected, warnings, strict=False)
            if len(expected) != len(warnings) or not all(words_agree(a, b) for a, b in pairs):
                out.append(f"/warnings: expected {expected}, got {warnings}")
        for key, expected_header in (wanted.get("headers") or {}).items():
            out.extend(match(expected_header, headers.get(key), self.context, f"/headers/{key}"))
        if "body" in wanted:
            expected_body = wanted["body"]
            if "project" in step:
                value = projected(step["project"], value)
            if "filter" in step:
                rule = {**step["filter"], "in": [self._text(name) for name in step["filter"]["in"]]}
                value = filtered(rule, value)
            out.extend(match(expected_body, value, self.context, "/body", unstable))
        elif "bodyText" in wanted and status < 400:
            out.extend(match(wanted["bodyText"], text, self.context, "/bodyText", unstable))
        return out

    # --- watches -----------------------------------------------------------------------------------------------------

    async def _watch(self, index: int, step: dict[str, Any]) -> None:
        request, wanted = step["request"], step["response"]
        headers = self._headers(request)
        timeout = aiohttp.ClientTimeout(total=None)
        answer = await self.session.get(self._url(request), headers=headers, timeout=timeout)
        out = []
        if answer.status != wanted["status"]:
            out.append(f"/status: expected {wanted['status']}, got {answer.status}")
        if "contentType" in wanted and answer.headers.get("Content-Type") != wanted["contentType"]:
            out.append(f"/contentType: expected {wanted['contentType']}, got {answer.headers.get('Content-Type')}")
        self.streams[step["watch"]] = Stream(answer)
        self.results.append(Result(index, _title(request) + " (watch)", out))

    async def _collect(self, index: int, step: dict[str, Any]) -> None:
        stream = self.streams[step["collect"]]
        count = step.get("count", len(step["events"]))
        events, ended = await stream.take(count, bool(step.get("untilEnd")))
        out = match(step["events"], events, self.context, "/events", tuple(step.get("unstable", ())))
        if "ended" in step and step["ended"] != ended:
            out.append(f"/ended: expected {step['ended']}, got {ended}")
        self.results.append(Result(index, f"collect {step['collect']}", out))


# --- helpers ---------------------------------------------------------------------------------------------------------


def _title(request: dict[str, Any]) -> str:
    query = "?" + urlencode(request["query"]) if request.get("query") else ""
    return f"{request['method']} {request['path']}{query}"


def _holds(until: dict[str, Any], status: int, value: Any, story: Story) -> bool:
    if status != until.get("status", status):
        return False
    if "path" not in until:
        return True
    wanted = until.get("value")
    wanted = story._text(wanted) if isinstance(wanted, str) else wanted
    return at(value, until["path"]) == wanted


# --- deviations ------------------------------------------------------------------------------------------------------


RESERVATIONS = "reservation.volcano.sh/v1alpha1"


class Deviation(NamedTuple):
    """A difference that is meant: `without` takes it out of the recorded and of our body; the rest must agree."""

    why: str
    without: Callable[[Any], Any]


def _order_of_resources(body: Any) -> Any:
    if not isinstance(body, dict) or ".volcano.sh/" not in body.get("groupVersion", ""):
        return body
    return {**body, "resources": sorted(body["resources"], key=lambda row: row["name"])}


def _go_dumps(body: Any) -> Any:
    if not isinstance(body, dict) or body.get("kind") != "Status":
        return body
    return {**body, "message": re.split(r"\n@@ |Invalid value: \{", body.get("message", ""))[0]}


def _queue_conditions(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    schemas = body.get("schemas") or (body.get("components") or {}).get("schemas") or {}
    if "sh.volcano.scheduling.v1beta1.Queue" not in schemas:
        return body
    copied = copy.deepcopy(body)
    schemas = copied.get("schemas") or copied["components"]["schemas"]
    queue = schemas["sh.volcano.scheduling.v1beta1.Queue"]
    queue["properties"]["status"]["properties"].pop("conditions", None)
    return copied


def _queue_columns(body: Any) -> Any:
    if not isinstance(body, dict) or body.get("kind") != "Table":
        return body
    columns = body.get("columnDefinitions") or []
    if [column["name"] for column in columns[:2]] != ["Name", "PARENT"]:
        return body
    rows = [{**row, "cells": row["cells"][:2]} for row in body.get("rows") or ()]
    return {**body, "columnDefinitions": columns[:2], "rows": rows}


def _reservations(body: Any) -> Any:
    """An index of OpenAPI v3 without our API group."""
    if not isinstance(body, dict) or not isinstance(body.get("paths"), dict):
        return body
    return {**body, "paths": {path: at for path, at in body["paths"].items() if RESERVATIONS not in path}}


DEVIATIONS = (
    Deviation("the kind Reservation is ours", _reservations),
    Deviation("queue-counters: queues have columns for state, weight and PodGroups", _queue_columns),
    Deviation("our definition of Queue has conditions, for clusters without webhooks", _queue_conditions),
    Deviation("custom resources of one group are listed in no particular order", _order_of_resources),
    Deviation("the message shows an object of ours, not Go's internal form of it", _go_dumps),
)


# --- the run ---------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def bare_sandbox(admin: User = ADMIN) -> AsyncIterator[Sandbox]:
    """What was recorded: no kubelets, no rules of Volcano's, no controllers but those of namespaces and garbage."""
    few = Options(workloads=False)
    sandbox = Sandbox(nodes=0, hollow=False, controllers=few, volcano_admission=False, users=USERS, first_queues=False)
    async with sandbox:
        sandbox.admin(admin)
        yield sandbox


async def replay(folder: Path, names: list[str], verbose: bool) -> list[Outcome]:
    """Run stories and print their counts; one Outcome for each request."""
    outcomes: list[Outcome] = []
    files = sorted((folder / "http").glob("*.json"))
    connector = aiohttp.TCPConnector(ssl=False)
    async with bare_sandbox() as sandbox, aiohttp.ClientSession(connector=connector) as session:
        for file in files:
            data = json.loads(file.read_bytes())
            if names and data["story"] not in names:
                continue
            story = Story(data, sandbox, session)
            try:
                results = await asyncio.wait_for(story.run(), 120)
            except Exception as error:
                problem = f"stopped: {type(error).__name__}: {error}"
                results = [*story.results, Result(-1, "story", [problem])]
            good = sum(not (result.problems and not result.deviation) for result in results)
            print(f"{'ok  ' if good == len(results) else 'FAIL'} {data['story']:28} {good}/{len(results)}")
            for result in results:
                outcomes.append(_outcome(data["story"], result))
                if result.problems and verbose:
                    print(f"  step {result.step}: {result.title} {result.deviation}")
                    for problem in result.problems[:12]:
                        print(f"      {problem}")
    return outcomes


def _outcome(story: str, result: Result) -> Outcome:
    name = f"{story}#{result.step}"
    if result.problems and not result.deviation:
        return Outcome(AREA, name, FAIL, "; ".join(result.problems))
    return Outcome(AREA, name, DEVIATION if result.deviation else PASS, result.deviation)


def main(arguments: list[str] | None = None) -> int:
    """Print how many requests are answered as the real server did."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds http/*.json")
    parser.add_argument("--story", action="append", default=[], help="only this story; may be repeated")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every difference")
    parser.add_argument("--least", type=float, default=0.0, help="exit with 1 below this share (0 to 1)")
    options = parser.parse_args(arguments)
    outcomes = asyncio.run(replay(options.data, options.story, options.verbose))
    good = sum(outcome.kind in (PASS, DEVIATION) for outcome in outcomes)
    stories = {outcome.name.split("#")[0] for outcome in outcomes}
    bad = {outcome.name.split("#")[0] for outcome in outcomes if outcome.kind == FAIL}
    share = good / len(outcomes) if outcomes else 0.0
    print(f"{good} of {len(outcomes)} requests ({share:.1%}); {len(stories - bad)} of {len(stories)} stories")
    return 0 if outcomes and share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
