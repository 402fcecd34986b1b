"""Traces in virtual time: small ones whose outcome can be worked out by hand."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from benchmarks.batch_traces import batch_trace
from volcano_py.api import scheduling
from volcano_py.api.codec import from_manifest
from volcano_py.cli.main import main
from volcano_py.cli.trace import _notes, _text, _unit
from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.cards import Cards, take
from volcano_py.simulate.trace.engine import Outcome, replay
from volcano_py.simulate.trace.figures import figures, jain, plot
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode, read_jobs

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,1000,100,1,1000,,LS,Running,0,100,0
b,1000,100,1,500,V1|V2,BE,Running,10,40,20
c,1000,100,2,1000,,LS,Succeeded,20,50,30
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,2,V1\n"
SWF = """\
; a comment
1 0 -1 100 64 -1 -1 64 100 -1 1 7 1 1 1 1 -1 -1
2 5 -1 50 32 -1 -1 32 50 -1 1 8 1 1 1 1 -1 -1
"""
CONF = configuration(DEFAULT_TEXT, False)


def files(folder: Path) -> tuple[Path, Path]:
    (folder / "pods.csv").write_text(PODS)
    (folder / "nodes.csv").write_text(NODES)
    return folder / "pods.csv", folder / "nodes.csv"


def test_rows_of_openb_are_jobs(tmp_path: Path) -> None:
    jobs, skipped = read_jobs(files(tmp_path)[0], 32)
    rows = [(j.name, j.submitted, j.duration) for j in jobs]
    assert skipped == 0 and rows == [("a", 0, 100), ("b", 10, 20), ("c", 20, 20)]
    assert jobs[1].requests[GPU] == 500 and jobs[1].models == ("V1", "V2")


def test_jobs_of_swf_are_gangs(tmp_path: Path) -> None:
    (tmp_path / "x.swf").write_text(SWF)
    jobs, _ = read_jobs(tmp_path / "x.swf", 32)
    assert [(j.name, j.pods, j.requests["cpu"], j.user) for j in jobs] == [
        ("job-1", 2, 32000, "user-7"),
        ("job-2", 1, 32000, "user-8"),
    ]


def test_jobs_wait_start_and_end_in_virtual_time(tmp_path: Path) -> None:
    jobs, _ = read_jobs(files(tmp_path)[0], 32)
    outcome = replay(jobs, [TraceNode("n0", {"cpu": 8000, "memory": 1000, GPU: 2000}, "V1")], CONF, 1.0)
    assert list(outcome.ended) == ["b", "a", "c"]
    assert outcome.started["c"] >= outcome.ended["a"] and not outcome.faults
    found = figures(jobs, outcome)
    assert found["jobs that ended"] == 3 and found["GPU allocated, highest"] == 1.0
    assert found["wait, p99"] > 70 and 0 < found["fairness (Jain, slowdown of users)"] < 1


def test_a_gang_starts_as_a_whole_and_a_job_too_large_never() -> None:
    nodes = [TraceNode(f"n{i}", {"cpu": 4000, "memory": 1000}) for i in range(2)]
    one = {"cpu": 4000, "memory": 1}
    rows = (("gang", 0, 10, 2), ("next", 1, 5, 1), ("huge", 2, 5, 3))
    jobs = [TraceJob(name, at, duration, "u", pods, one) for name, at, duration, pods in rows]
    outcome = replay(jobs, nodes, CONF, 1.0)
    assert outcome.started["next"] >= outcome.ended["gang"] and set(outcome.ended) == {"gang", "next"}
    assert outcome.never == {"huge": "it needs 3 pods at the same time, the empty cluster has capacity for 2"}


def test_jobs_that_never_fit_are_reported(tmp_path: Path) -> None:
    pods, nodes = files(tmp_path)
    rows = "".join(f"x{i},9000,100,0,0,,LS,Running,{i},9,1\n" for i in range(7))
    pods.write_text(PODS + rows + "v,1000,100,1,500,V9,BE,Running,10,40,20\n")
    ran = CliRunner().invoke(main, ["simulate", "trace", str(pods), "--nodes", str(nodes), "--interval", "5"])
    lines = ran.stderr.splitlines()
    assert "job x0 never fits: it needs 1 pod at the same time, the empty cluster has capacity for 0" in lines
    assert "3 more jobs never fit" in lines and ran.exit_code == 0


def test_jain_is_one_for_equals() -> None:
    assert jain([2.0, 2.0]) == 1.0 and jain([1.0, 0.0, 0.0, 0.0]) == 0.25


def test_two_configurations_stand_side_by_side(tmp_path: Path) -> None:
    pods, nodes = files(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).write_text(DEFAULT_TEXT)
    arguments = ["simulate", "trace", str(pods), "--nodes", str(nodes)]
    arguments += ["--conf", str(tmp_path / "one"), "--conf", str(tmp_path / "two")]
    result = CliRunner().invoke(main, [*arguments, "-o", "json"])
    found = json.loads(result.stdout)["figures"]
    assert result.exit_code == 0 and list(found) == [str(tmp_path / "one"), str(tmp_path / "two")]
    first, second = ({k: v for k, v in of.items() if k != "run time"} for of in found.values())
    assert first == second
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0 and "slowdown, p99" in result.stdout
    result = CliRunner().invoke(main, [*arguments, "--compress", "20", "-o", "json"])
    faster = next(iter(json.loads(result.stdout)["figures"].values()))
    assert faster["wait, mean"] > first["wait, mean"]


def test_a_trace_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    _, nodes = files(tmp_path)
    head, row = PODS.splitlines()[:2]
    cases = {
        "negative.csv": (f"{head}\n{row.replace(',100,0', ',5,10')}", "negative.csv:2: a ends 5 s before it begins"),
        "less.csv": (f"{head}\n{row.replace('a,1000', 'a,-1')}", "less.csv:2: cpu_milli is -1, and must be from 0"),
        "begun.csv": (f"{head}\n{row[:-2]},x", "begun.csv:2: scheduled_time is 'x', and must be a number"),
        "far.csv": (f"{head}\n{row.replace(',100,0', ',1' + '0' * 15 + ',0')}", "must be from 0 to 1e+11"),
        "binary.csv": (f"{head}\n" + "\0" * 200_000, "binary.csv:2: the line has 100,000 characters or more"),
        "gap.csv": (f"{head}\n{row.replace(',100,0', ',,0')}", "gap.csv:2: deletion_time is '', and must be a number"),
        "column.csv": ("name,cpu_milli\na,1", "column.csv:1: the column memory_mib is missing"),
        "empty.csv": (head, "has no job"),
        "gap.swf": ("1 0 -1 -1 4 -1 -1 4 100 -1 1 7 1 1 1 1 -1 -1", "gap.swf:1: job 1 has no run time"),
        "negative.swf": (f"1 0 -1 -7{' 4 -1 -1' * 2} 1 1 7 1 1 1 1 -1 -1", "job 1 has no run time"),
        "nan.swf": (f"1 0 -1 nan{' 4 -1 -1' * 2} 1 1 7 1 1 1 1 -1 -1", "nan.swf:1: a number is not finite"),
        "binary.swf": ("\0" * 200_000, "binary.swf:1: the line has 100,000 characters or more"),
        "short.swf": ("1 0 3", "short.swf:1: 3 fields; SWF has 18"),
    }
    for name, (text, says) in cases.items():
        (tmp_path / name).write_text(text + "\n")
        with pytest.raises(TraceError, match=re.escape(says)):
            read_jobs(tmp_path / name, 32)
        result = CliRunner().invoke(main, ["simulate", "trace", str(tmp_path / name), "--nodes", str(nodes)])
        assert result.exit_code == 2 and says in result.stderr and len(result.stderr.splitlines()) == 1
    (tmp_path / "some.csv").write_text(PODS + row.replace(",100,0", ",5,10").replace("a,", "d,") + "\n")
    jobs, skipped = read_jobs(tmp_path / "some.csv", 32, skip=True)
    assert len(jobs) == 3 and skipped == 1


def test_a_gap_in_time_takes_no_cycles(tmp_path: Path) -> None:
    (tmp_path / "gap.swf").write_text(SWF.replace("\n2 5 ", "\n2 1000000000 "))
    jobs, _ = read_jobs(tmp_path / "gap.swf", 32)
    outcome = replay(jobs, [TraceNode("n0", {"cpu": 64000, "memory": 1000})], CONF, 1.0)
    assert len(outcome.ended) == 2 and outcome.cycles == 2


def test_nodes_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    pods, nodes = files(tmp_path)
    nodes.write_text(NODES.replace(",8000,", ",-8000,"))
    result = CliRunner().invoke(main, ["simulate", "trace", str(pods), "--nodes", str(nodes)])
    assert result.exit_code == 2 and "nodes.csv:2: cpu_milli is -8000" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("found", "compress", "words"),
    [
        ({"wait, p50": 20.0, "GPU allocated, highest": 0.9}, 1.0, []),
        ({"wait, p50": 5.0, "GPU allocated, highest": 0.9}, 1.0, ["set a smaller --interval"]),
        ({"GPU allocated, highest": 0.02, "cpu allocated, highest": 0.9}, 2.0, ["such as --compress 40,"]),
        ({"cpu allocated, highest": 0.1}, 1.0, ["at most 10.0% of the cluster is allocated"]),
        ({"cpu allocated, highest": 0.0}, 1.0, ["at most 0.0%"]),
    ],
)
def test_notes_say_what_limits_the_figures(found: dict[str, float], compress: float, words: list[str]) -> None:
    notes = [*_notes({"a": found}, 10.0, compress)]
    assert len(notes) == len(words) and all(word in note for word, note in zip(words, notes, strict=True))


def test_the_table_has_units() -> None:
    figures = {
        "wait, mean": 12.34,
        "makespan": 9000.0,
        "GPU allocated, mean": 0.123,
        "jobs": 8152.0,
        "slowdown, p50": 1.5,
    }
    texts = [_text(value, _unit(figure)) for figure, value in figures.items()]
    assert texts == ["12.3", "9,000", "12.3%", "8,152", "1.500"] and _text(None, "s") == "-"


def test_missing_matplotlib_is_reported_before_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ["simulate", "trace", str(tmp_path / "no-such-trace"), "--nodes", "1x1", "--plot", str(tmp_path / "p")]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr) == (2, "error: plots need matplotlib: pip install 'volcano-py[plots]'\n")


def test_plots_end_when_almost_all_jobs_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, figure, axes = MagicMock(), MagicMock(), MagicMock()
    library.pyplot.subplots.return_value = figure, axes
    monkeypatch.setitem(sys.modules, "matplotlib", library)
    jobs = [TraceJob(f"j{i}", 0.0, 3600.0 if i < 199 else 1e6, "u", 1, {"cpu": 1}) for i in range(200)]
    outcome = replay(jobs, [TraceNode("n", {"cpu": 2000})], configuration(DEFAULT_TEXT, False), 3600.0)
    files = plot({"a": outcome, "b": outcome}, jobs, tmp_path / "plots")
    assert [call.args for call in figure.savefig.call_args_list] == [(file,) for file in files]
    limits = [call.kwargs["right"] for call in axes.set_xlim.call_args_list]
    assert limits[:2] == [2.0, 2.0] and limits[2] is None, "hours"
    styles = {call.kwargs["label"]: call.kwargs["linestyle"] for call in axes.step.call_args_list}
    assert styles == {"a": "solid", "b": "dashed"}, "equal lines do not hide each other"


def test_quick_cycles_decide_the_same() -> None:
    """Without reports and hopeless cycles, in one queue and in two of which one is full."""
    jobs = read_swf_text(batch_trace(3, 1.1, jobs=120, nodes=8, cores=16), 16)
    nodes = [TraceNode(f"n{i}", {"cpu": 16_000, "memory": 2**30}) for i in range(8)]
    capped = {"metadata": {"name": "user-1", "uid": "q"}, "spec": {"capability": {"cpu": "64"}}, "status": {}}
    capped["status"] = {"state": "Open"}
    for queues in ([], [from_manifest(scheduling.Queue, capped)]):
        quick, whole = (replay(jobs, nodes, CONF, 600.0, queues=queues, quick=quick) for quick in (True, False))
        assert quick.started == whole.started and quick.ended == whole.ended
        assert quick.cycles < whole.cycles


def read_swf_text(text: str, cores: int) -> list[TraceJob]:
    with tempfile.NamedTemporaryFile("w", suffix=".swf") as file:
        file.write(text)
        file.flush()
        return read_jobs(Path(file.name), cores)[0]


SAMPLE = Path(__file__).parent / "data" / "cluster.swf"


def test_a_real_header_comments_and_missing_fields_are_read() -> None:
    jobs, skipped = read_jobs(SAMPLE, 16, skip=True)
    assert skipped == 2  # cancelled before it ran; no processors
    assert [(j.name, j.limit, j.queue, j.user, j.pods) for j in jobs] == [
        ("job-1", 3600, "queue-1", "user-3", 2),
        ("job-2", None, "queue-2", "user-4", 1),
        ("job-4", 86400, "queue-1", "user-3", 1),
        ("job-6", 600, "", "user-5", 8),
    ]
    with pytest.raises(TraceError, match=r"cluster.swf:19: job 3 has no run time"):
        read_jobs(SAMPLE, 16)


def test_jobs_belong_to_the_queue_of_their_user_or_of_the_trace(tmp_path: Path) -> None:
    queues = tmp_path / "queues.yaml"
    capped = "kind: Queue\nmetadata: {name: user-3}\nspec: {capability: {cpu: 16, memory: 1Ti}}\n"
    queues.write_text(capped + "---\nkind: Queue\nmetadata: {name: queue-2}\n")
    arguments = ["simulate", "trace", str(SAMPLE), "--nodes", "8x16", "--skip", "--interval", "10", "-o", "json"]
    ran = CliRunner().invoke(main, [*arguments, "--queues", str(queues)])
    found = json.loads(ran.stdout)["figures"]["built-in"]
    assert found["jobs that started"] == 2  # job-1 needs more than its queue may have, job-6 the share of that queue
    free = json.loads(CliRunner().invoke(main, arguments).stdout)["figures"]["built-in"]
    assert free["jobs that started"] == 4
    assert {"wait of the largest 5 %, p95", "wait of the smallest half, p95", "wait, max"} <= free.keys()
    for text, says in (
        ("kind: Pod", "document 1 is a Pod, and must be a Queue"),
        ("kind: Queue", "document 1 has no metadata.name; set it"),
        ("", "has no Queue; write manifests as for kubectl"),
        ("kind: Queue\nmetadata: {name: a}\n---\nkind: Queue\nmetadata: {name: a}", "two Queues have the name a"),
        ("kind: Queue\nmetadata: {name: a}\nspec: {weight: x}", "Queue a: "),
        ("a: [", "not a YAML file"),
    ):
        queues.write_text(text)
        ran = CliRunner().invoke(main, [*arguments, "--queues", str(queues)])
        assert ran.exit_code == 2 and says in ran.stderr, text


def test_waits_are_also_reported_by_size() -> None:
    jobs = [TraceJob(f"j{i}", 0, 10, "u", 1, {"cpu": 1000 * (i + 1), "memory": 1}) for i in range(20)]
    found = figures(jobs, Outcome({"cpu": 20_000}, {f"j{i}": float(i) for i in range(20)}))
    assert found["wait of the largest 5 %, p95"] == 19 and found["wait of the smallest half, max"] == 9
    assert found["wait, max"] == 19


def gpu_job(name: str, at: float, cards: int, share: int, duration: float = 10) -> TraceJob:
    requests = {"cpu": 1000, "memory": 1, GPU: cards * share}
    return TraceJob(name, at, duration, "u", 1, requests, cards=cards, share=share)


def test_a_share_belongs_to_one_card() -> None:
    """Two cards with 400 free each are not one with 800, and a whole card is one without pods."""
    nodes = [TraceNode("n", {"cpu": 9000, "memory": 1000, GPU: 2000})]
    shares = [gpu_job("a", 0, 1, 600, 100), gpu_job("b", 1, 1, 600, 50)]
    outcome = replay(
        [*shares, gpu_job("c", 2, 1, 800), gpu_job("d", 3, 1, 400), gpu_job("e", 60, 1, 1000)], nodes, CONF, 1.0
    )
    assert outcome.started["d"] == 3 and outcome.started["c"] >= outcome.ended["b"]
    assert outcome.started["e"] >= outcome.ended["c"] and not outcome.faults
    assert len(outcome.ended) == 5


def test_cards_are_taken_where_the_least_is_free() -> None:
    free = Cards([TraceNode("n", {GPU: 3000})]).free
    assert [take(free, 0, gpu_job("j", 0, cards, share)) for cards, share in ((1, 500), (1, 300), (2, 1000))] == [
        [0],
        [0],
        [1, 2],
    ]
    assert free.tolist() == [[200, 0, 0]] and take(free, 0, gpu_job("j", 0, 1, 300)) == []


def test_filling_submits_until_more_is_requested_than_there_is(tmp_path: Path) -> None:
    """Pods of 700 thousandths: one on each card, so that 70 % are allocated, and the fifth waits."""
    pods, nodes = files(tmp_path)
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,100,1,1,700\n")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,2,V1\nn1,8000,1000,2,V1\n")
    arguments = ["simulate", "trace", str(pods), "--nodes", str(nodes), "--arrivals", "fill"]
    ran = CliRunner().invoke(main, [*arguments, "-o", "json"])
    assert json.loads(ran.stdout)["figures"]["built-in"] == {
        "GPU allocated at the first wait": 0.7,
        "GPU allocated at arrivals of 100 %": 0.7,
        "GPU allocated at arrivals of 130 %": 0.7,
    }
    assert "70.0%" in CliRunner().invoke(main, arguments).stdout
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,0,\n")
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 2 and "--arrivals fill needs GPUs" in ran.stderr
