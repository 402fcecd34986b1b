"""Command lines: what was typed, what the API server was asked and answered, and what was printed.

Each recorded command runs through our program with a client that answers from the record; requests and output must be
those of Volcano's tool. `ADAPTERS` turns the recorded functions into our commands.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import click
import yaml
from click.testing import CliRunner

from tests.conformance.outcome import FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.api.duration import parse_duration
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import parse_time
from volcano_py.api.quantity import canonical
from volcano_py.cli import columns, queue_table, vcancel, vcctl, vcctl_pod, vresume, vsuspend
from volcano_py.kube.client import selectors
from volcano_py.kube.errors import from_response

Data = dict[str, Any]


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All recorded commands of a folder."""
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text()):
            yield run_case(f"cli {path.stem}", case)


def run_case(area: str, case: Data) -> Outcome:
    adapter = ADAPTERS.get((case["command"], case["function"]))
    if adapter is None:
        return Outcome(area, case["id"], NOT_BUILT, case["command"])
    now = _now(case)
    with mock.patch("time.time", lambda: now):
        try:
            wrong = adapter(case)
        except Exception as e:
            wrong = f"{type(e).__name__}: {e}"
    return Outcome(area, case["id"], FAIL if wrong else PASS, wrong)


def _now(case: Data) -> float:
    """When the case was recorded: where it does not say so, the latest time in it."""
    stamps = [case["now"]] if "now" in case else _STAMP.findall(json.dumps(case))
    return max(map(parse_time, stamps), default=0.0)


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


# ---- commands


class Recorded:
    """A client that answers from the record, in order."""

    def __init__(self, api: list[Data]) -> None:
        self.left = list(api)
        self.wrong: list[str] = []

    async def __aenter__(self) -> Recorded:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def _answer(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        if not self.left:
            raise AssertionError(f"{method} {path} is one request too many")
        call = self.left.pop(0)
        asked, expected = (method, path), (call["method"], call["path"])
        if asked != expected:
            self.wrong.append(f"{' '.join(asked)}, expected {' '.join(expected)}")
        if urlencode(query or {}) != (call.get("query") or ""):
            self.wrong.append(f"query {query}, expected {call.get('query')}")
        # The body of a DELETE only repeats its kind.
        if method != "DELETE" and _plain(body) != _plain(call.get("request")):
            self.wrong.append(f"{method} {path} with {_plain(body)}, expected {_plain(call.get('request'))}")
        if call["status"] >= 400:
            raise from_response(call["status"], json.dumps(call["response"]).encode())
        return call["response"]

    async def get(self, rt: ResourceType, name: str, namespace: str | None = None) -> Any:
        return self._answer("GET", rt.path(namespace, name))

    async def list(self, rt: ResourceType, namespace: str | None = None, label_selector: str | None = None) -> Any:
        return self._answer("GET", rt.path(namespace), query=selectors(label_selector, None)).get("items") or []

    async def create(self, rt: ResourceType, obj: Data, namespace: str | None = None) -> Any:
        return self._answer("POST", rt.path(namespace), obj)

    async def patch(self, rt: ResourceType, name: str, body: Data, namespace: str | None = None) -> Any:
        return self._answer("PATCH", rt.path(namespace, name), body)

    async def delete(self, rt: ResourceType, name: str, namespace: str | None = None) -> Any:
        return self._answer("DELETE", rt.path(namespace, name))


def _plain(value: Any, key: str = "") -> Any:
    """Without what Go leaves out because it is empty, and with quantities in one form."""
    if isinstance(value, dict):
        pairs = {k: _plain(v, k) for k, v in value.items()}
        if key in ("requests", "limits"):
            return {k: canonical(v) for k, v in pairs.items()}
        return {k: v for k, v in pairs.items() if v not in (None, "", 0, [], {})}
    return [_plain(v) for v in value] if isinstance(value, list) else value


Adapter = Callable[[Data], str]


def _command(words: str, options: Mapping[str, str], program: click.Command = vcctl.main) -> Adapter:
    """A command; `options`: recorded flag → our option, given even when it is empty, as the record means it."""

    def run(case: Data) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return compared(case, folder)

    def compared(case: Data, folder: str) -> str:
        flags = case.get("flags") or {}
        arguments = words.split()
        for flag, option in options.items():
            value = flags.get(flag, "")
            if option == "--all-namespaces":
                arguments += [option] * bool(value)
            elif option in _NUMBERS:
                arguments += [option, str(value or 0)]
            elif option == _FILE:
                arguments += [option, _written(case, folder)] if value else []
            else:
                arguments += [option, value]
        client = Recorded(case.get("api", []))
        with mock.patch("volcano_py.kube.client.Client") as connect:
            connect.for_flags.return_value = client
            result = CliRunner().invoke(program, arguments, prog_name="program")
        wrong = list(client.wrong)
        if client.left:
            wrong.append(f"did not ask {client.left}")
        output = case["output"]
        if "error" in output:
            group, verb = words.split()
            said = f"Failed to {verb} {group}: {output['error']}\n"
            if result.output != said or result.exit_code != 255:
                wrong.append(f"{result.output!r} and exit code {result.exit_code}, expected {said!r} and 255")
        else:
            wrong += _differs(result.output, output["stdout"])
            if result.exit_code:
                wrong.append(f"exit code {result.exit_code}: {result.exception!r}")
        return "; ".join(wrong)

    return run


_NUMBERS = ("-m", "-r", "-w")
_FILE = "--file"


def _written(case: Data, folder: str) -> str:
    """The path of a file of the objects that the command is recorded to create or to delete."""
    documents = []
    for call in case["api"]:
        *_, collection, last = call["path"].split("/")
        sent = call.get("request") or {}
        name = sent["metadata"]["name"] if call["method"] == "POST" else last
        kind = _KINDS[last if call["method"] == "POST" else collection]
        # where it is left out of the file, the namespace is default
        document = {"apiVersion": sent["apiVersion"], "kind": kind, "metadata": {"name": name}}
        documents.append(document | {key: value for key, value in sent.items() if key == "spec"})
    path = Path(folder) / "objects.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


_KINDS = {"jobflows": "JobFlow", "jobtemplates": "JobTemplate"}


def _differs(said: str, expected: str) -> list[str]:
    return [] if said == expected else [f"{said!r}, expected {expected!r}"]


# ---- functions


def _print_pods(case: Data) -> str:
    given = case["input"]
    return _printed(case, vcctl_pod.pod_table(given["pods"].get("items") or [], given["showNamespace"]))


def _print_queues(case: Data) -> str:
    given = case["input"]
    return _printed(case, queue_table.queue_table(given["queues"].get("items") or [], given.get("queueStats") or {}))


def _printed(case: Data, table: columns.Table) -> str:
    @click.command()
    def show() -> None:
        table.show()

    result = CliRunner().invoke(show)
    return "; ".join(_differs(result.output, case["output"]["stdout"]))


def _sort(case: Data) -> str:
    got = vcctl_pod.in_order(case["input"]["pods"])
    return "" if got == case["after"]["pods"] else f"{[p['metadata'] for p in got]}"


def _union(case: Data) -> str:
    got = vcctl_pod.union(case["input"]["existing"], case["input"]["toAppend"])
    return "" if got == case["output"]["result"] else f"{[p['metadata'] for p in got]}"


def _duration(case: Data) -> str:
    text = case["input"]["d"]
    seconds = -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)
    got = columns.human_duration(seconds)
    return "" if got == case["output"]["result"] else f"{got!r}, expected {case['output']['result']!r}"


_JOB = {"JobName": "-N", "Namespace": "-n"}
_PODS = {"Namespace": "-n", "JobName": "-j", "QueueName": "-q", "allNamespace": "--all-namespaces"}
_RUN = {
    "Name": "-N",
    "Namespace": "-n",
    "Image": "-i",
    "MinAvailable": "-m",
    "Replicas": "-r",
    "Requests": "-R",
    "Limits": "-L",
    "SchedulerName": "-S",
    "FileName": "-f",
}
_SINGLE = {"JobName": "-n", "Namespace": "-N"}
_NAMED = {"Name": "-N", "Namespace": "-n"}
_LIST = {
    "Namespace": "-n",
    "QueueName": "-q",
    "SchedulerName": "-S",
    "selector": "--selector",
    "allNamespace": "--all-namespaces",
}

ADAPTERS: dict[tuple[str, str], Adapter] = {
    ("job", "RunJob"): _command("job run", _RUN),
    ("job", "ListJobs"): _command("job list", _LIST),
    ("job", "ViewJob"): _command("job view", _JOB),
    ("job", "DeleteJob"): _command("job delete", _JOB),
    ("job", "SuspendJob"): _command("job suspend", _JOB),
    ("job", "ResumeJob"): _command("job resume", _JOB),
    ("queue", "CreateQueue"): _command("queue create", {"Name": "-n", "Weight": "-w", "State": "-S"}),
    ("queue", "DeleteQueue"): _command("queue delete", {"Name": "-n"}),
    ("queue", "GetQueue"): _command("queue get", {"Name": "-n"}),
    ("queue", "ListQueue"): _command("queue list", {}),
    ("queue", "OperateQueue"): _command("queue operate", {"Name": "-n", "Action": "-a", "Weight": "-w"}),
    ("queue", "PrintQueues"): _print_queues,
    ("pod", "ListPods"): _command("pod list", _PODS),
    ("pod", "PrintPods"): _print_pods,
    ("pod", "sortPods"): _sort,
    ("pod", "appendIfNotExists"): _union,
    ("util", "HumanDuration"): _duration,
    ("vcancel", "CancelJob"): _command("", _SINGLE, vcancel.main),
    ("vsuspend", "SuspendJob"): _command("", _SINGLE, vsuspend.main),
    ("vresume", "ResumeJob"): _command("", _SINGLE, vresume.main),
    **{
        (kind.lower(), f"{verb.capitalize()}{kind}"): _command(f"{kind.lower()} {verb}", options)
        for kind in _KINDS.values()
        for verb, options in (
            ("create", {"FilePath": _FILE}),
            ("delete", {"FilePath": _FILE, **_NAMED}),
            ("get", _NAMED),
            ("list", {"Namespace": "-n"}),
            ("describe", {**_NAMED, "Format": "-o"}),
        )
    },
}
"""(command, function) → what runs it here and says what differs, "" when nothing does."""
