from __future__ import annotations

import pytest

from volcano_py.sandbox.kubelet.behaviour import FOREVER, Run, plain_run, run_of


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["sleep", "30"], Run(30.0)),
        (["/bin/sleep", "1.5m"], Run(90.0)),
        (["exit", "3"], Run(0.0, 3)),
        (["true"], Run(0.0)),
        (["/bin/false"], Run(0.0, 1)),
        (["echo", "hello", "you"], Run(0.0, 0, ((0.0, "hello you"),))),
        (["sh", "-c", "sleep 2; exit 1"], Run(2.0, 1)),
        (["/bin/bash", "-ec", "echo a && sleep 1\necho b"], Run(1.0, 0, ((0.0, "a"), (1.0, "b")))),
        (["sh", "-c", "false && echo no || echo yes"], Run(0.0, 0, ((0.0, "yes"),))),
        (["sh", "-c", "false; true"], Run(0.0, 0)),
        (["sh", "-c", "sleep infinity"], Run(None)),
        (["sh", "-c", "python train.py"], None),
        (["nginx"], None),
        (["sh", "script.sh"], None),
        (["sh", "-c", "echo 'unbalanced"], None),
        ([], None),
    ],
)
def test_plain_commands_are_simulated(command: list[str], expected: Run | None) -> None:
    assert plain_run(tuple(command)) == expected


def pod(**annotations: str) -> dict:
    return {
        "metadata": {"annotations": {f"sandbox.volcano.sh/{k.replace('_', '-')}": v for k, v in annotations.items()}}
    }


def test_annotations_come_first() -> None:
    container = {"command": ["sleep", "30"]}
    assert run_of(pod(run_seconds="5"), container) == Run(5.0)
    assert run_of(pod(run_seconds="5", exit_code="7"), container) == Run(5.0, 7)
    assert run_of(pod(exit_code="7"), container) == Run(0.0, 7)
    assert run_of(pod(run_seconds="soon"), container) == Run(30.0)
    assert run_of(pod(), {"image": "nginx"}) == FOREVER


def test_init_containers_always_end() -> None:
    assert run_of(pod(run_seconds="60"), {"image": "nginx"}, init=True) == Run(0.0)
    assert run_of(pod(), {"command": ["sleep", "2"]}, init=True) == Run(2.0)
