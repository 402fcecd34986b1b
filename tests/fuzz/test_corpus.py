"""The kept inputs, some new ones for each target, and that the runner finds faults."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.run import Summary, corpus, folder_name, fuzz, one
from tests.fuzz.target import Target
from tests.fuzz.targets import ALL

NEW = 20
FOLDERS = {folder_name(name): target for name, target in ALL.items()}


def test_kept_inputs() -> None:
    found = corpus()
    assert len(found) > 30
    outcomes = {f"{folder}/{path.name}": one(FOLDERS[folder], path.read_bytes())[2] for folder, path in found}
    assert {name: (fault.why, fault.trace) for name, fault in outcomes.items() if fault} == {}


@pytest.mark.parametrize("name", ALL)
def test_new_inputs(name: str) -> None:
    summary = Summary()
    fuzz(ALL[name], 1, 3600.0, summary, NEW)
    assert [(fault.why, fault.trace, fault.data) for fault in summary.findings] == []
    assert summary.inputs == NEW + len(ALL[name].seeds)


@pytest.mark.parametrize("name", [name for name in ALL if name != "error of the API server"])
def test_the_valid_input_is_valid(name: str) -> None:
    assert any(one(ALL[name], seed)[0] for seed in ALL[name].seeds)


def test_undeclared_errors_and_broken_promises_are_found() -> None:
    def run(data: bytes) -> None:
        if data.endswith(b"1"):
            raise KeyError(data)
        if data.endswith(b"2"):
            raise ValueError(data)
        assert not data.endswith(b"3")

    target = Target("sample", run, (ValueError,), [b"0"], "bytes")
    found = {data: one(target, data) for data in (b"0", b"1", b"2", b"3")}
    assert [data for data, (accepted, _, _) in found.items() if accepted] == [b"0", b"1", b"3"]
    faults = {data: fault.why.split(":")[0] for data, (_, _, fault) in found.items() if fault}
    assert faults == {b"1": "KeyError", b"3": "AssertionError"}


def test_slow_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 3.0))
    monkeypatch.setattr(time, "thread_time", lambda: next(times))
    _, _, fault = one(Target("sample", len, (), [b""]), b"x")
    assert fault is not None and fault.why == "slow: 3.0 s for 1 bytes"


def test_equal_faults_are_one_with_the_shortest_input() -> None:
    def run(data: bytes) -> None:
        if b"x" in data:
            raise KeyError(data)

    summary = Summary()
    fuzz(Target("sample", run, (), [b"x" * 40], "bytes"), 1, 3600.0, summary, 300)
    assert len(summary.findings) == 1 and len(summary.findings[0].data) < 40
