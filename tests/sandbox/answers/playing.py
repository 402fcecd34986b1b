"""Play the requests of requests.yaml on a server, and give its answers in a form that can be compared.

A step is [verb, path, body]. TABLE is GET of what `kubectl get` prints; MERGE, STRATEGIC, JSON and APPLY are PATCH with
that type of patch. A path that does not begin with "/" begins with the name of an entry of `paths`. In paths and
bodies, `${2.metadata.uid}` is a field of the answer of step 2, and `$NS` the namespace of the scenario.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from volcano_py.api.yaml_documents import FAST_LOADER

FOLDER = Path(__file__).parent
REQUESTS: dict[str, Any] = yaml.load((FOLDER / "requests.yaml").read_text(), FAST_LOADER)
VERSIONS = {"1.36": "recorded-1.36.yaml", "1.37": "recorded-1.37.yaml"}
"""The file with the answers of kube-apiserver of each version."""
PATCHES = {
    "MERGE": "application/merge-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "JSON": "application/json-patch+json",
    "APPLY": "application/apply-patch+yaml",
}

Answer = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Requests in a namespace of their own, to a server with these feature gates."""

    name: str
    gates: str
    versions: Sequence[str]
    steps: Sequence[Sequence[Any]]

    @property
    def namespace(self) -> str:
        return re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")


def scenarios(version: str) -> list[Scenario]:
    """Those that a version of Kubernetes is compared in."""
    rows = [
        Scenario(row["name"], row.get("gates", "all"), row.get("versions", list(VERSIONS)), row["steps"])
        for row in REQUESTS["scenarios"]
    ]
    return [row for row in rows if version in row.versions]


@dataclass
class Peer:
    """A server with a session of its administrator."""

    session: aiohttp.ClientSession
    url: str
    headers: Mapping[str, str]

    async def play(self, scenario: Scenario) -> list[Answer]:
        """The answers to the steps of a scenario, in order."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scenario.namespace}}
        await self._send("POST", "/api/v1/namespaces", body)
        raw: list[Any] = []
        answers: list[Answer] = []
        for step in scenario.steps:
            verb, path, body = (*step, None)[:3]
            if verb == "WAIT":  # until the admission plugins of kube-apiserver have seen an object
                await asyncio.sleep(float(path))
                raw.append(None)
                answers.append({})
                continue
            filled = [_filled(value, raw, scenario.namespace) for value in (path, body)]
            status, value = await self._send(verb, _whole(filled[0], scenario.namespace), filled[1])
            raw.append(value)
            answers.append(comparable(status, value))
        return answers

    async def _send(self, verb: str, path: str, body: Any) -> tuple[int, Any]:
        method = "PATCH" if verb in PATCHES else "GET" if verb == "TABLE" else verb
        headers = {**self.headers, "Content-Type": PATCHES.get(verb, "application/json")}
        if verb == "TABLE":
            headers["Accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
        data = None if body is None else body if isinstance(body, str) else json.dumps(body)
        async with self.session.request(method, self.url + path, data=data, headers=headers) as answer:
            text = await answer.text()
            if "watch=true" in path and answer.status == 200:
                return answer.status, [json.loads(line) for line in text.splitlines()]
            is_json = "json" in answer.headers.get("Content-Type", "")
            return answer.status, json.loads(text) if is_json and text else text


def _whole(path: str, namespace: str) -> str:
    if path.startswith("/"):
        return path
    first, slash, rest = path.partition("/")
    first, question, query = first.partition("?")
    found: str = REQUESTS["paths"][first].replace("$NS", namespace)
    return found + question + query + slash + rest


def _filled(value: Any, answers: Sequence[Any], namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, answers, namespace) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, answers, namespace) for each in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> str:
        number, *fields = match[1].split(".")
        at = answers[int(number)]
        for field in fields:
            at = at[int(field)] if isinstance(at, list) else at[field]
        return str(at)

    return re.sub(r"\$\{([^}]+)\}", found, value).replace("$NS", namespace)


_REPLACED = (
    (re.compile(r'(?<=Invalid value: )"\{.*\}"(?=: json)'), "<object>"),
    (re.compile(r"\bp-[a-z0-9]{5}\b"), "<generated>"),
    (re.compile(r"(?<=record \()\d+(?=\))|(?<=current: )\d+"), "<version>"),
    # the difference of two pods in Go's own form
    (re.compile(r"\n@@.*", re.DOTALL), ""),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r'\[\{"[Nn]ame":.*\}\](?=: maximum template)'), "<templates in the server's own form>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
)
_VERSION = re.compile(r"(resource ?[vV]ersion:(?: Invalid value:)? )\"?\d+\"?( \(\d+\))?")


def comparable(status: int, value: Any) -> Answer:
    """The status and what both servers must agree on: no UIDs, times and resource versions."""
    if isinstance(value, dict) and value.get("kind") == "Status":
        details = value.get("details") or {}
        kept = {"code": value.get("code"), "reason": value.get("reason"), "message": value.get("message")}
        causes = details.get("causes")
        if str(details.get("group", "")).endswith("volcano.sh"):  # kube-apiserver's order is random
            causes = sorted(causes or [], key=str)
            kept["message"] = (
                sorted(re.split(r"[\[\]]|, ", kept["message"] or "")) if len(causes) > 1 else kept["message"]
            )
        kept |= {"causes": causes, "details": {k: details.get(k) for k in ("name", "group", "kind")}}
        value = kept
    elif isinstance(value, dict) and value.get("kind") == "Table":
        columns = [(column["name"], column["type"]) for column in value["columnDefinitions"]]
        rows = [[re.sub(r"^\d+s$", "<age>", str(cell)) for cell in row["cells"]] for row in value["rows"]]
        value = {"columns": [list(column) for column in columns], "rows": rows}
    elif isinstance(value, list):
        value = [{"type": event["type"], "object": _slim(event["object"])} for event in value]
    return {"status": status, "answer": _plain(_slim(value))}


def _slim(value: Any) -> Any:
    if isinstance(value, list):
        return [_slim(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {key: _slim(each) for key, each in value.items() if each is not None}
    if isinstance(out.get("metadata"), dict):
        out["metadata"] = {k: v for k, v in out["metadata"].items() if k not in ("resourceVersion", "managedFields")}
    out.pop("storageVersionHash", None)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        for pattern, text in _REPLACED:
            value = pattern.sub(text, value)
        return _VERSION.sub(r"\1<version>", value)
    return value


def differences(theirs: Any, ours: Any, at: str = "") -> list[str]:
    """A line for each field that differs."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        names = [*theirs, *(name for name in ours if name not in theirs)]
        rows = [differences(theirs.get(name), ours.get(name), f"{at}.{name}") for name in names]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        rows = [differences(*pair, f"{at}[{i}]") for i, pair in enumerate(zip(theirs, ours, strict=True))]
    else:
        return [] if theirs == ours else [f"{at}\n    kube-apiserver: {theirs!r}\n    sandbox:        {ours!r}"]
    return [line for row in rows for line in row]
