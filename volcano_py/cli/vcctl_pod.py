"""`vcctl pod list`. Volcano: vcctl pod list; columns and statuses are kubectl's."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api import names
from volcano_py.api.kinds import POD
from volcano_py.cli.columns import Table, age
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.listing import Listing, show, watch_option
from volcano_py.cli.output import output_option
from volcano_py.cli.selection import label_option

Manifest = dict[str, Any]
_HEADER = ("Name", "Ready", "Status", "Restart", "Age")
_WIDE = ("IP", "Node", "Task")


@click.group()
def pod() -> None:
    """List the pods of jobs and queues."""


@pod.command("list")
@click.option("-q", "--queue", default="", help="Select pods of this queue.")
@click.option("-j", "--job", default="", help="Select pods of this job.")
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pods.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@label_option
@output_option()
@watch_option()
@api_options
def list_(
    queue: str,
    job: str,
    namespace: str,
    all_namespaces: bool,
    label_selector: str,
    output: str | None,
    watch: bool,
    kubeconfig: str,
    master: str,
) -> None:
    """List pods of jobs."""
    # Volcano lists the pods of a job with this selector, and all pods to find those of a queue.
    of_job = f"{names.JOB_NAME} in ({job})" if job else "" if queue else names.JOB_NAME
    listing = Listing(
        POD,
        lambda pods, _, wide: pod_table(pods, all_namespaces, wide),
        None if all_namespaces else namespace,
        ",".join(filter(None, (of_job, label_selector))),
        choose=lambda pods: in_order(_of(pods, queue, job)),
    )
    call("list pod", kubeconfig, master, lambda client: show(client, listing, output, watch))


def _of(pods: list[Manifest], queue: str, job: str) -> list[Manifest]:
    """The pods of a queue, if one is set. Raises ValueError if those of a job are in another queue."""
    if not queue:
        return pods
    labelled = [p for p in pods if (p["metadata"].get("labels") or {}).get(names.QUEUE_NAME) == queue]
    if job:
        if len(labelled) < len(pods):
            raise ValueError(f"the input vcjob {job} does not match the queue {queue}")
        return pods
    annotated = [p for p in pods if (p["metadata"].get("annotations") or {}).get(names.POD_QUEUE_NAME) == queue]
    return union(labelled, annotated)


def union(pods: list[Manifest], more: list[Manifest]) -> list[Manifest]:
    """`pods`, and those of `more` that they do not contain."""
    known = {_key(p) for p in pods}
    return [*pods, *(p for p in more if _key(p) not in known)]


def in_order(pods: list[Manifest]) -> list[Manifest]:
    """Sorted by namespace and name."""
    return sorted(pods, key=_key)


def _key(p: Manifest) -> tuple[str, str]:
    return p["metadata"].get("namespace", ""), p["metadata"]["name"]


def pod_table(pods: list[Manifest], namespaces: bool, wide: bool = False) -> Table:
    """The table of pods; without pods, only the header."""
    header = [*(("Namespace",) if namespaces else ()), *_HEADER, *(_WIDE if wide else ())]
    rows: list[list[str]] = []
    for p in pods:
        before = [p["metadata"].get("namespace", "")] if namespaces else []
        rows.append([*before, *pod_row(p), *(_wide_cells(p) if wide else ())])
    widths = [max([len(name) + 2, *(len(r[i]) + 8 for r in rows)]) for i, name in enumerate(header)]
    return Table(header, rows, widths)


def _wide_cells(p: Manifest) -> list[str]:
    labels = p["metadata"].get("labels") or {}
    found = ((p.get("status") or {}).get("podIP"), (p.get("spec") or {}).get("nodeName"))
    return [*(text or "<none>" for text in found), labels.get(names.TASK_SPEC) or "<none>"]


def pod_row(p: Manifest) -> list[str]:
    """Name, ready, status, restarts and age as kubectl shows them."""
    metadata, spec, status = p["metadata"], p.get("spec") or {}, p.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(1 for c in containers if c.get("ready"))
    restarts = sum(c.get("restartCount", 0) for c in containers)
    return [
        metadata["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        pod_status(p),
        str(restarts),
        age(p),
    ]


def pod_status(p: Manifest) -> str:
    """The status of a pod as one word, as kubectl prints it."""
    status = p.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "")
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        reason = "SchedulingGated"
    initialising = _init_status(p)
    if initialising:
        reason = initialising
    else:
        running = False
        for c in reversed(status.get("containerStatuses") or []):
            state = c.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated")
            if waiting.get("reason"):
                reason = waiting["reason"]
            elif ended is not None:
                signal = ended.get("signal")
                reason = ended.get("reason") or (
                    f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"
                )
            elif c.get("ready") and state.get("running") is not None:
                running = True
        if reason == "Completed" and running:
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
            reason = "Running" if ready else "NotReady"
    if p["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _init_status(p: Manifest) -> str:
    status = p.get("status") or {}
    inits = status.get("initContainerStatuses") or []
    for i, c in enumerate(inits):
        state = c.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if c.get("started"):
            continue
        if ended is not None:
            if ended.get("reason"):
                return f"Init:{ended['reason']}"
            return f"Init:Signal:{ended['signal']}" if ended.get("signal") else f"Init:ExitCode:{ended.get('exitCode')}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{i}/{len((p.get('spec') or {}).get('initContainers') or ())}"
    return ""
