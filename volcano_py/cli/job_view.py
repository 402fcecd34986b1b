"""A job as text, for `vcctl job view`. Volcano: the same lines, for scripts that parse them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any

import orjson

from volcano_py.api import names
from volcano_py.api.bus import MAX_RUN_TIME_EXCEEDED
from volcano_py.api.duration import format_duration
from volcano_py.api.meta import parse_time
from volcano_py.api.quantity import canonical
from volcano_py.api.run_time import stated_run_time
from volcano_py.cli.columns import human_duration
from volcano_py.cli.job_table import expected_end

Manifest = dict[str, Any]
_ANNOTATIONS = (
    ("Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
_COUNTERS = (
    ("Succeeded:    ", "succeeded"),
    ("Pending:      ", "pending"),
    ("Running:      ", "running"),
    ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"),
    ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"),
    ("Version:      ", "version"),
)
_EVENT_WIDTHS = (15, 40, 30, 40, 0)


def describe(job: Manifest, conditions: bool = True) -> list[str]:
    """A job as lines of text; label and value are separated by a tab."""
    metadata, spec, status = job.get("metadata") or {}, job.get("spec") or {}, job.get("status") or {}
    plugins = spec.get("plugins") or {}
    out = [
        f"Name:       \t{metadata.get('name', '')}",
        f"Namespace:  \t{metadata.get('namespace', '')}",
        f"Labels:     \t{_json(metadata.get('labels'))}",
        f"Annotations:\t{_json(metadata.get('annotations'))}",
        # Volcano's client omits these two fields, so they are empty there, too.
        "API Version:\t",
        "Kind:       \t",
        "Metadata:",
        f"  Creation Timestamp:\t{_stamp(metadata.get('creationTimestamp'))}",
        f"  Generate Name:     \t{metadata.get('generateName', '')}",
        f"  Generation:        \t{metadata.get('generation', 0)}",
        f"  Resource Version:  \t{metadata.get('resourceVersion', '')}",
        f"  UID:               \t{metadata.get('uid', '')}",
        "Spec:",
        f"  Min Available:     \t{spec.get('minAvailable', 0)}",
        "  Plugins:",
        f"    Env:\t{_words(plugins.get('env'))}",
        f"    Ssh:\t{_words(plugins.get('ssh'))}",
        f"  Scheduler Name:    \t{spec.get('schedulerName', '')}",
        "  Tasks:",
    ]
    for task in spec.get("tasks") or ():
        out += _task(task)
    out.append("Status:")
    out += [f"  {label}\t{status[key]}" for label, key in _COUNTERS if status.get(key, 0) > 0]
    out += ["  State:", f"    Phase:\t{(status.get('state') or {}).get('phase', '')}", *_run_time(job)]
    if status.get("controlledResources"):
        out.append("  Controlled Resources:")
        out += [f"    {key}: \t{value}" for key, value in sorted(status["controlledResources"].items())]
    if conditions and status.get("conditions"):
        out += ["  Conditions:", "    Status\tTransitionTime"]
        out += [f"    {c.get('status', '')} \t{_stamp(c.get('lastTransitionTime'))} " for c in status["conditions"]]
    return out


def _run_time(job: Manifest) -> Iterator[str]:
    """How long the job may run, and that its limit has ended it; nothing for jobs that state no limit."""
    state = (job.get("status") or {}).get("state") or {}
    if state.get("reason") == MAX_RUN_TIME_EXCEEDED:
        yield f"    Reason:\t{state['reason']}"
        yield f"    Message:\t{state.get('message', '')}"
    annotations = job["metadata"].get("annotations") or {}
    limit = stated_run_time(annotations, job["metadata"].get("labels") or {})
    if limit is None or limit == inf:
        return
    yield f"  Max Run Time:\t{format_duration(limit)}"
    if chosen := annotations.get(names.ON_MAX_RUN_TIME):
        yield f"  On Max Run Time:\t{chosen}"
    if end := expected_end(job):
        yield f"  Expected End:\t{end}"


def _task(task: Manifest) -> Iterator[str]:
    template = task.get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    pod = template.get("spec") or {}
    yield f"    Name:\t{task.get('name', '')}"
    yield f"    Replicas:\t{task.get('replicas', 0)}"
    yield from ("    Template:", "      Metadata:", "        Annotations:")
    yield from (f"          {label}\t{annotations.get(key, '')}" for label, key in _ANNOTATIONS)
    yield f"        Creation Timestamp:\t{_stamp((template.get('metadata') or {}).get('creationTimestamp'))}"
    yield from ("      Spec:", "        Containers:")
    for container in pod.get("containers") or ():
        yield from _container(container)
    yield "        Image Pull Secrets:"
    yield from (f"          Name:     \t{secret.get('name', '')}" for secret in pod.get("imagePullSecrets") or ())
    yield f"        Restart Policy:   \t{pod.get('restartPolicy', '')}"


def _container(container: Manifest) -> Iterator[str]:
    yield "          Command:"
    yield from (f"            {word}" for word in container.get("command") or ())
    yield f"          Image:\t{container.get('image', '')}"
    yield f"          Name: \t{container.get('name', '')}"
    yield "          Ports:"
    for port in container.get("ports") or ():
        yield f"            Container Port:\t{port.get('containerPort', 0)}"
        yield f"            Name:          \t{port.get('name', '')}"
    yield "          Resources:"
    for label, key in (("Limits", "limits"), ("Requests", "requests")):
        amounts = (container.get("resources") or {}).get(key) or {}
        yield f"            {label}:"
        yield f"              Cpu:   \t{canonical(amounts.get('cpu', '0'))}"
        yield f"              Memory:\t{canonical(amounts.get('memory', '0'))}"
    yield f"            Working Dir:\t{container.get('workingDir', '')}"


def events(found: list[Manifest]) -> list[str]:
    """The events of a job as a table."""
    if not found:
        return ["Events: \t<none>"]
    header = ("Type", "Reason", "Age", "Form", "Message")
    rows = [header, ("-------",) * 5, *(_event(e) for e in found)]
    return [
        "Events:",
        *("\t".join(text.ljust(width) for text, width in zip(r, _EVENT_WIDTHS, strict=True)) for r in rows),
    ]


def _event(event: Manifest) -> tuple[str, ...]:
    source = event.get("source") or {}
    reporter = source.get("component") or event.get("reportingComponent", "")
    # Events of current recorders have eventTime and a series instead of first, last and count.
    series = event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    last = event.get("lastTimestamp") or series.get("lastObservedTime")
    count = series.get("count") or event.get("count") or 1
    age = f"{_since(last)} (x{count} over {_since(first)})" if count > 1 else _since(first)
    return (
        event.get("type", ""),
        event.get("reason", ""),
        age,
        ", ".join(filter(None, (reporter, source.get("host")))),
        event.get("message", "").strip(),
    )


def _since(stamp: str | None) -> str:
    return human_duration(time.time() - parse_time(stamp)) if stamp else "<unknown>"


def _stamp(stamp: str | None) -> str:
    """A time as Go prints it."""
    if not stamp:
        return "0001-01-01 00:00:00 +0000 UTC"
    return datetime.fromtimestamp(parse_time(stamp), UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")


def _json(values: dict[str, str] | None) -> str:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode() if values else "<none>"


def _words(arguments: list[str] | None) -> str:
    """A list as Go prints it."""
    return f"[{' '.join(arguments or ())}]"
