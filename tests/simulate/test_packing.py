"""The model of FGD against a plain computation, the variants of a trace, and the command that compares."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fgd_model import FgdModel
from benchmarks.packing import CANDIDATES, MODEL, packing
from benchmarks.trace_variants import variant
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode


def pod(name: str, cpu: int, cards: int, share: int, models: tuple[str, ...] = ()) -> TraceJob:
    requests = {"cpu": cpu, "memory": 1, GPU: cards * share}
    return TraceJob(name, 0.0, 1.0, "all", 1, requests, models, cards=cards, share=share if cards else 0)


def node(name: str, cpu: int, cards: int, model: str = "") -> TraceNode:
    return TraceNode(name, {"cpu": cpu, "memory": 100, GPU: 1000 * cards}, model)


def unusable(cpu: int, cards: list[int], model: str, mix: list[TraceJob]) -> float:
    """By definition: what each GPU pod cannot use of the free cards, as the mean."""
    lost = 0
    for job in mix:
        accepted = not job.models or model in job.models
        fits = accepted and cpu >= job.requests["cpu"] and sum(card >= job.share for card in cards) >= job.cards
        lost += sum(card for card in cards if not fits or card < job.share)
    return lost / len(mix)


@pytest.mark.parametrize("seed", range(10))
def test_each_pod_goes_where_it_adds_least(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [
        pod(f"k{k}", rng.randint(1, 4), *rng.choice(((0, 0), (1, 300), (1, 600), (1, 1000), (2, 1000))),
            rng.choice(((), (), ("A",))))
        for k in range(6)
    ]  # fmt: skip
    kinds.append(pod("share", 1, 1, 500))
    nodes = [node(f"n{n}", rng.randint(6, 12), rng.randint(1, 3), rng.choice("AB")) for n in range(5)]
    mix = [job for job in kinds if job.cards]
    model = FgdModel(nodes, kinds)
    waits = 0
    for job in rng.choices(kinds, k=25):
        cpu, cards = model.cpu.copy(), model.cards.copy()
        added = {}
        for n, of in enumerate(nodes):
            real = [int(card) for card in cards[n, : of.capacity[GPU] // 1000]]
            if cpu[n] < job.requests["cpu"] or (job.cards and job.models and of.model not in job.models):
                continue
            able = sorted((card, c) for c, card in enumerate(real) if card >= job.share) if job.cards else []
            if len(able) < job.cards:
                continue
            places = [[c] for _, c in able] if job.cards == 1 else [[c for _, c in able[: job.cards]]]
            for chosen in places:
                after = [card - job.share * (c in chosen) for c, card in enumerate(real)]
                before = unusable(int(cpu[n]), real, of.model, mix)
                change = unusable(int(cpu[n]) - job.requests["cpu"], after, of.model, mix) - before
                added[n, tuple(sorted(after))] = change
        placed = model.place(job)
        assert placed == bool(added)
        waits += not placed
        if placed:
            [n] = (cpu != model.cpu).nonzero()[0]
            after = tuple(sorted(int(card) for card in model.cards[n, : nodes[n].capacity[GPU] // 1000]))
            assert added[n, after] == pytest.approx(min(added.values()))
    assert waits, "the cluster must become full"
    assert 0 < model.allocated <= 1


def test_variants_have_the_stated_share() -> None:
    shares, whole = [pod(f"s{i}", 1, 1, 250) for i in range(40)], [pod(f"w{i}", 1, 2, 1000) for i in range(40)]
    jobs = [pod("cpu", 1, 0, 0), *shares, *whole]
    nodes = [node("a", 8, 3, "A"), node("b", 8, 1, "B"), node("c", 8, 0)]
    mixed = variant("gpushare40", jobs, nodes)
    of_shares = sum(job.requests[GPU] for job in mixed if 0 < job.share < 1000)
    assert of_shares / sum(job.requests[GPU] for job in mixed) == pytest.approx(0.4, abs=0.02)
    assert sum(not job.cards for job in mixed) == 1
    assert all(job.share < 1000 for job in variant("gpushare100", jobs, nodes))
    chosen = [job.models for job in variant("gpuspec100", jobs, nodes) if job.cards]
    assert len(chosen) == 80 and set(chosen) == {("A",), ("B",)} and chosen.count(("A",)) > chosen.count(("B",))


@pytest.mark.parametrize(
    ("name", "jobs", "problem"),
    [
        ("gpushare101", [pod("w", 1, 1, 1000)], "use gpushareN or gpuspecN"),
        ("other", [pod("w", 1, 1, 1000)], "use gpushareN or gpuspecN"),
        ("gpushare40", [pod("w", 1, 1, 1000)], "no pod of the trace requests shares of cards"),
        ("gpushare40", [pod("s", 1, 1, 500)], "no pod of the trace requests whole cards"),
        ("gpuspec33", [pod("w", 1, 1, 1000)], "no node has GPUs"),
    ],
)
def test_variants_that_cannot_be_drawn(name: str, jobs: list[TraceJob], problem: str) -> None:
    with pytest.raises(TraceError, match=problem):
        variant(name, jobs, [node("c", 8, 0)])


def test_the_command_compares_all_scores_with_the_model(tmp_path: Path) -> None:
    """Pods of 700 thousandths: one on each card, whatever the scores."""
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,100,1,1,700\n")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,2,V1\nn1,8000,1000,2,V1\n")
    arguments = ["--nodes", str(nodes), "--pods", str(pods), "--seeds", "2"]
    ran = CliRunner().invoke(packing, arguments)
    lines = ran.stdout.splitlines()[1:]
    assert [line[:34].strip() for line in lines] == [MODEL, *CANDIDATES]
    assert all(line.split()[-4:] == ["70.00%"] * 4 for line in lines)
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,0,\n")
    ran = CliRunner().invoke(packing, arguments)
    assert ran.exit_code == 1 and "needs GPUs" in ran.stderr
