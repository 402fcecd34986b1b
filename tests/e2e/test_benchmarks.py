"""The benchmarks run and come out as their scenarios say; how fast is not for a test to judge."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=300)


def test_our_own_scenarios_are_what_decision_reads(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("decision", "--only", "gang-small", "--only", "singles-small", "--json", str(out))
    assert done.returncode == 0, done.stderr
    assert [(r["id"], r["bound"]) for r in json.loads(out.read_text())] == [("gang-small", 64), ("singles-small", 400)]
    assert len({len(line) for line in done.stdout.splitlines()}) == 1, "the table is aligned"
    missing = run("decision", "--only", "nothing")
    assert missing.returncode == 2 and "no scenario nothing in scenarios.json" in missing.stderr


@pytest.mark.slow
def test_goals_are_measured_with_each_of_the_kernels(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("goals", "--only", "one-gang-5000n-10000p", "--only", "one-more-5000n-50000r", "--json", str(out))
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())
    assert [(r["row"], r["kernels"]) for r in results] == [
        (row, kernels)
        for row in ("one-gang-5000n-10000p", "one-more-5000n-50000r")
        for kernels in ("numpy", "compiled")
    ]
    assert [r["bound"] for r in results[:2]] == [10_000, 10_000] and all(r["cycle_s"] > 0 for r in results)
    unknown = run("goals", "--only", "nothing")
    assert unknown.returncode == 2 and "no row nothing" in unknown.stderr


@pytest.mark.slow
def test_growth_is_measured_point_by_point(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("growth", "--small", "--json", str(out))
    assert done.returncode == 0, done.stderr
    points = json.loads(out.read_text())
    assert {name: [p["size"] for p in of] for name, of in points.items()} == {
        "nodes": [10, 20],
        "pods": [20, 40],
        "queues": [2, 4],
        "running": [20, 40],
    }
    assert [p["bound"] for p in points["pods"]] == [20, 40] and done.stdout.count("slope") == 4


@pytest.mark.slow
def test_the_sandbox_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("sandbox", "--nodes", "12", "--pods", "200", "--large", "1500", "--json", str(out))
    figures = json.loads(out.read_text())
    assert (figures["nodes"], figures["pods"], figures["gangs"]) == (12, 200, 2)
    assert figures["creations_per_s"] > 0 and figures["bindings_per_s"] > 0
    assert 0 < figures["server_empty_mib"] <= figures["server_running_mib"]
    assert figures["server_of_it_mib"] < figures["altogether_mib"]
    assert 0 < figures["start_ready_s"] < figures["start_first_job_s"]
    assert figures["creations_kept_per_s"] > 0 and figures["deliveries_per_s"] > 0
    assert 0 < figures["paged_stall_ms"] / 1000 <= figures["paged_s"]
    assert "pod creations" in done.stdout and "target" in done.stdout.splitlines()[0]


@pytest.mark.slow
def test_limits_are_measured_case_by_case() -> None:
    done = run("limits", "--small")
    assert done.returncode == 0, done.stderr
    assert [line.split("  ")[0] for line in done.stdout.splitlines()[1:4]] == [
        "single pods of as many classes",
        "one pod with 1,000 anti-affinity terms",
        "one job of 100,000 tasks",
    ]
    assert done.stdout.count("junk updates of running pods") == 2


@pytest.mark.slow
def test_requests_are_counted_by_program() -> None:
    done = run("requests", "--pods", "20", "--size", "10", "--only", "bare", "--only", "job")
    assert done.returncode == 0, done.stderr
    bare, jobs = done.stdout.split("Jobs of 10")
    for text in (bare, jobs):
        assert re.search(r"^  dispatcher +create +pods/binding +1\.000 ", text, re.MULTILINE)
        assert re.search(r"^  scheduler +watch +pods +0\.000 +[1-9],\d{3}$", text, re.MULTILINE), "bytes of the watch"
    assert "podgroups" not in bare
    assert re.search(r"^  vc-controller-manager +create +podgroups +0\.100 ", jobs, re.MULTILINE)


@pytest.mark.slow
def test_the_time_to_bind_is_measured() -> None:
    done = run("binding", "--nodes", "10", "--seconds", "2", "--jobs", "3", "--size", "4")
    assert done.returncode == 0, done.stderr
    single, jobs = done.stdout.splitlines()
    assert re.fullmatch(r"10 single pods, 5 per second, on 10 nodes: created to bound P50 \d+ ms, P99 \d+ ms", single)
    assert re.fullmatch(r"3 Jobs of 4 at once: \d+ pods/s, P50 \d+ ms, P99 \d+ ms from the pod's first event", jobs)
