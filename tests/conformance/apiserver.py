"""Replay recorded stories of a real API server against the sandbox, and count the requests that are answered alike.

`python -m tests.conformance.apiserver --data FOLDER [--story NAME …] [-v]`: FOLDER holds `http/*.json`. A story runs
in a namespace of its own; stories share one sandbox. Without -v only counts are printed, with it every difference.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp import web
from yarl import URL

from tests.conformance.outcome import FAIL, PASS, Outcome
from tests.sandbox.matching import Context, match, words_agree
from volcano_py.sandbox import certs
from volcano_py.sandbox.apiserver.request import User
from volcano_py.sandbox.cluster import Sandbox

UNTIL_SECONDS = 10.0
EVENT_SECONDS = 6.0
USERS = {
    "token-alice": User("alice", ("dev", "system:authenticated"), "alice-uid"),
    "token-bob": User("bob", ("system:authenticated",), "bob-uid"),
}


class WebhookServer:
    """The admission server of a story: answers by path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.certificate = certs.make(("127.0.0.1", "localhost"))
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
        self.results: list[tuple[int, str, list[str]]] = []

    async def run(self) -> list[tuple[int, str, list[str]]]:
        """(step, what, differences) for every request and every collection of events."""
        ns = "story-" + secrets.token_hex(3)
        self.context.variables["ns"] = ns
        if self.data.get("namespace"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}
            await self._call({"method": "POST", "path": "/api/v1/namespaces", "body": body})
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
            self.results.append((index, "received", problems))
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
                text = text[:start] + str(_at(answer, text[start + len(name) + 3 : end])) + text[end + 1 :]
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
                self.results.append((index, _title(request), [f"no answer: {type(error).__name__}: {error}"]))
                return
            if "until" not in step or _holds(step["until"], status, value, self) or time.monotonic() > deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.3)
        if step.get("id"):
            self.answers[step["id"]] = value
        self.results.append((index, _title(request), self._compare(step, wanted, status, headers, value, text)))

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
                value = _projected(step["project"], value)
            if "filter" in step:
                rule = {**step["filter"], "in": [self._text(name) for name in step["filter"]["in"]]}
                value = _filtered(rule, value)
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
        self.results.append((index, _title(request) + " (watch)", out))

    async def _collect(self, index: int, step: dict[str, Any]) -> None:
        stream = self.streams[step["collect"]]
        count = step.get("count", len(step["events"]))
        events, ended = await stream.take(count, bool(step.get("untilEnd")))
        out = match(step["events"], events, self.context, "/events", tuple(step.get("unstable", ())))
        if "ended" in step and step["ended"] != ended:
            out.append(f"/ended: expected {step['ended']}, got {ended}")
        self.results.append((index, f"collect {step['collect']}", out))


# --- helpers ---------------------------------------------------------------------------------------------------------


def _title(request: dict[str, Any]) -> str:
    query = "?" + urlencode(request["query"]) if request.get("query") else ""
    return f"{request['method']} {request['path']}{query}"


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def _holds(until: dict[str, Any], status: int, value: Any, story: Story) -> bool:
    if status != until.get("status", status):
        return False
    if "path" not in until:
        return True
    wanted = until.get("value")
    wanted = story._text(wanted) if isinstance(wanted, str) else wanted
    return _at(value, until["path"]) == wanted


def _filtered(rule: dict[str, Any], value: Any) -> Any:
    *parents, last = rule["list"].split(".")
    holder = _at(value, ".".join(parents)) if parents else value
    if isinstance(holder, dict) and isinstance(holder.get(last), list):
        holder[last] = [row for row in holder[last] if _at(row, rule["key"]) in rule["in"]]
    return value


def _projected(rule: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if rule == "keys":
        return sorted(value)
    if rule == "openapi-index":
        return {"paths": {key: row for key, row in value["paths"].items() if ".example.com" not in key}}
    names = rule.removeprefix("schemas:").split(",")
    schemas = value.get("components", {}).get("schemas", {})
    return {
        "topLevel": sorted(value),
        "openapi": value.get("openapi"),
        "info": value.get("info"),
        "schemas": {name: _keywords(schemas[name], 2) for name in names if name in schemas},
        "componentKeys": sorted(value.get("components", {})),
        "operations": _operations(value.get("paths", {}), rule),
    }


_KEYWORDS = (
    "type",
    "required",
    "format",
    "enum",
    "minimum",
    "maximum",
    "pattern",
    "default",
    "nullable",
    "$ref",
    "allOf",
)


def _keywords(schema: Any, depth: int) -> Any:
    out = {key: schema[key] for key in schema if key in _KEYWORDS or key.startswith("x-")}
    if depth and "properties" in schema:
        out["properties"] = {key: _keywords(row, depth - 1) for key, row in schema["properties"].items()}
    if isinstance(schema.get("items"), dict) and depth:
        out["items"] = _keywords(schema["items"], 0)
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = _keywords(schema["additionalProperties"], 0)
    return out


def _operations(paths: dict[str, Any], rule: str) -> dict[str, Any]:
    kept = ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")
    out = {}
    for path, methods in paths.items():
        if "core.v1" in rule and "/pods" not in path:
            continue
        rows = {
            method: {key: row[key] for key in kept if key in row}
            for method, row in methods.items()
            if method in ("get", "put", "post", "delete", "patch", "options", "head")
        }
        if rows:
            out[path] = rows
    return out


# --- the run ---------------------------------------------------------------------------------------------------------


async def replay(folder: Path, names: list[str], verbose: bool) -> list[Outcome]:
    """Run stories and print their counts; one Outcome for each request."""
    outcomes: list[Outcome] = []
    files = sorted((folder / "http").glob("*.json"))
    sandbox = Sandbox(nodes=0, hollow=False, count=False, volcano_admission=False, users=USERS, first_queues=False)
    async with sandbox, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        sandbox.admin(User("admin", ("system:masters", "system:authenticated"), "admin"))
        for file in files:
            data = json.loads(file.read_bytes())
            if names and data["story"] not in names:
                continue
            story = Story(data, sandbox, session)
            try:
                results = await asyncio.wait_for(story.run(), 120)
            except Exception as error:
                results = [*story.results, (-1, "story", [f"stopped: {type(error).__name__}: {error}"])]
            good = sum(not problems for _, _, problems in results)
            print(f"{'ok  ' if good == len(results) else 'FAIL'} {data['story']:28} {good}/{len(results)}")
            for index, title, problems in results:
                kind = FAIL if problems else PASS
                outcomes.append(Outcome("apiserver", f"{data['story']}#{index}", kind, "; ".join(problems)))
                if problems and verbose:
                    print(f"  step {index}: {title}")
                    for problem in problems[:12]:
                        print(f"      {problem}")
    return outcomes


def main(arguments: list[str] | None = None) -> int:
    """Print how many requests are answered as the real server did."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds http/*.json")
    parser.add_argument("--story", action="append", default=[], help="only this story; may be repeated")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every difference")
    parser.add_argument("--least", type=float, default=0.0, help="exit with 1 below this share (0 to 1)")
    options = parser.parse_args(arguments)
    outcomes = asyncio.run(replay(options.data, options.story, options.verbose))
    good = sum(outcome.kind == PASS for outcome in outcomes)
    stories = {outcome.name.split("#")[0] for outcome in outcomes}
    bad = {outcome.name.split("#")[0] for outcome in outcomes if outcome.kind != PASS}
    share = good / len(outcomes) if outcomes else 0.0
    print(f"{good} of {len(outcomes)} requests ({share:.1%}); {len(stories - bad)} of {len(stories)} stories")
    return 0 if outcomes and share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
