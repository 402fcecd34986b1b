"""Functions as tasks: the program has what the function uses, and runs without this module."""

from __future__ import annotations

import json as renamed
import math
import os
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from volcano_py.client import Invalid, Task, TaskError, from_yaml, job, task, to_yaml

FACTOR, NAMES = 3, ("a", "b")
OPEN = sys.stdout


def scaled(value: float) -> float:
    return value * FACTOR


def factorial(value: int) -> int:
    return 1 if value < 2 else value * factorial(value - 1)


@task(cpus=2, gpus=1, replicas=2, memory="1Gi", image="example/image:1", env={"A": "b"})
def work(value: float, *more: int, text: str = "ä\"'\\\n") -> None:
    print(renamed.dumps([scaled(value), math.floor(2.5), list(NAMES), factorial(4), list(more), text]))
    print(PurePosixPath("/a") / "b", [scaled(one) for one in (1, 2)])


def run(made: Task) -> str:
    """The output of a task's program, with nothing of this environment."""
    command = [sys.executable, "-I", *list(made.command)[1:]]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd="/", env={"PATH": os.environ["PATH"]}
    )
    return done.stdout


def test_the_program_has_what_the_function_uses() -> None:
    first, second = run(work(1.5, 7, 8)).splitlines()
    assert renamed.loads(first) == [4.5, 2, ["a", "b"], 24, [7, 8], "ä\"'\\\n"]
    assert second == "/a/b [3, 6]"


def test_options_and_local() -> None:
    made = work.options(replicas=5, node_selector={"zone": "a"})(1.0)
    assert (made.replicas, made.cpus, made.node_selector) == (5, 2, {"zone": "a"})
    assert work.name == "work" and scaled(2) == 6
    assert task()(scaled).local(2.0) == 6.0
    with pytest.raises(Invalid) as raised:
        work.options(cpu=3)
    assert raised.value.field == "cpu" and "cpus" in raised.value.remedy


def unavailable() -> None:
    print(OPEN)


def undefined() -> None:
    print(nowhere)  # type: ignore[name-defined]  # noqa: F821


def test_what_a_pod_does_not_have_is_an_error_with_its_name() -> None:
    inner = 3

    def closure() -> None:
        print(inner)

    for function, field in ((unavailable, "OPEN"), (undefined, "nowhere"), (closure, "inner")):
        with pytest.raises(TaskError) as raised:
            task()(function)()
        assert raised.value.field == field and raised.value.remedy, raised.value
    with pytest.raises(TaskError) as raised:
        work(object())  # type: ignore[arg-type]
    assert raised.value.field == "0" and "object" in str(raised.value)
    with pytest.raises(TaskError, match="missing a required argument"):
        work()  # type: ignore[call-arg]
    with pytest.raises(TaskError, match="more than 100000"):
        work(1.0, text="x" * 200_000)
    with pytest.raises(TaskError, match="def"):
        task(name="x")(lambda: None)()


def test_the_manifest_of_a_job() -> None:
    made = job("train", work(1.0), queue="q", retries=2, namespace="team", ttl_seconds=5, labels={"a": "b"})
    spec = made["spec"]
    assert made["metadata"] == {"name": "train", "namespace": "team", "labels": {"a": "b"}}
    assert (spec["queue"], spec["minAvailable"], spec["maxRetry"], spec["ttlSecondsAfterFinished"]) == ("q", 2, 2, 5)
    assert spec["policies"] == [{"event": "PodFailed", "action": "RestartJob"}] and set(spec["plugins"]) == {
        "env",
        "svc",
    }
    [container] = spec["tasks"][0]["template"]["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert from_yaml(to_yaml(made)) == made


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"cpus": "much"}, "cpus"),
        ({"memory": "1GB!"}, "memory"),
        ({"gpus": "two"}, "gpus"),
        ({"requests": {"example.com/x": "?"}}, "requests"),
    ],
)
def test_amounts_that_are_none(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as raised:
        Task(name="t", image="i", **arguments).manifest()  # type: ignore[arg-type]
    assert raised.value.field == field and raised.value.object == "task t"


def test_what_is_no_job(tmp_path: os.PathLike[str]) -> None:
    for source, text in (
        ("a: [\n", "not valid YAML"),
        ("kind: Pod\n", "apiVersion is None"),
        ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n", "no name"),
        ("/nosuch.yaml", "cannot be read"),
        ("- 1\n- 2\n", "is list"),
    ):
        with pytest.raises(Invalid, match=text):
            from_yaml(source)
    with pytest.raises(Invalid, match="call the function"):
        job("x", work)  # type: ignore[arg-type]
    with pytest.raises(Invalid) as raised:
        job("x")
    assert raised.value.field == "spec.tasks"
