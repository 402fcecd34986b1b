"""A Volcano Job among the described objects is what the controllers would make of it."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4, "memory": "8Gi", "pods": 9}}}
CONF = configuration(DEFAULT_TEXT, False)


def task(replicas: int, **more: Any) -> Manifest:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": 1}}}
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}, **more}


def job(*tasks: Manifest, phase: str = "", **spec: Any) -> Manifest:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": list(tasks), **spec},
        "status": {"state": {"phase": phase}},
    }


def pods(simulation: Simulation) -> list[str]:
    return [key for kind, key in simulation.objects if kind == "Pod"]


def test_a_job_is_a_gang_of_all_its_pods_unless_it_sets_min_available() -> None:
    assert len(Simulation([NODE, job(task(4))]).cycle(CONF).bound) == 4
    result = Simulation([NODE, job(task(5))]).cycle(CONF)
    assert not result.bound and list(result.waiting) == ["default/j-job-default-j"]
    assert len(Simulation([NODE, job(task(5), minAvailable=2)]).cycle(CONF).bound) == 4


def test_its_pods_have_the_queue_and_the_priority_of_the_job() -> None:
    urgent = {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    simulation = Simulation(
        [
            NODE,
            {"kind": "Queue", "metadata": {"name": "q"}},
            urgent,
            job(task(1), queue="q", priorityClassName="urgent"),
        ]
    )
    [group] = [o for (kind, _), o in simulation.objects.items() if kind == "PodGroup"]
    assert (group["spec"]["queue"], group["spec"]["minResources"]["cpu"]) == ("q", "1")
    assert simulation.objects["Pod", "default/j-default0-0"]["spec"]["priority"] == 9


def test_pods_of_a_task_that_waits_for_another_come_later() -> None:
    first, then = task(1, name="first"), task(1, name="then", dependsOn={"name": ["first"]})
    assert pods(Simulation([NODE, job(first, then)])) == ["default/j-first-0"]


def test_what_the_controllers_have_made_already_is_not_made_again() -> None:
    made = Simulation([NODE, job(task(2))])
    described = [o for (kind, _), o in made.objects.items() if kind in ("Pod", "PodGroup")]
    again = Simulation([NODE, job(task(2), phase="Pending"), *described])
    assert set(again.objects) == set(made.objects)
    waiting = Simulation([NODE, job(task(2), phase="Pending"), *(o for o in described if o["kind"] == "PodGroup")])
    assert pods(waiting) == ["default/j-default0-0", "default/j-default0-1"], "made once the group is admitted"


@pytest.mark.parametrize("phase", ["Running", "Completed", "Aborted"])
def test_a_job_that_has_started_has_the_pods_that_are_described(phase: str) -> None:
    assert not pods(Simulation([NODE, job(task(2), phase=phase)]))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (job(task(1), minAvailable=2), "job 'minAvailable' should not be greater than total replicas"),
        (job(task(1), queue="none"), "queue 'none' not found"),
        (job(), "No task specified in job spec"),
        (job(task(10**9)), "spec.tasks: more than 100,000 replicas; use fewer"),
        (job(task("many")), "Job j: Expected `int`, got `str` - at `$.spec.tasks[0].replicas`"),  # type: ignore[arg-type]
    ],
)
def test_a_job_that_admission_would_deny_is_reported_and_the_others_run(bad: Manifest, reason: str) -> None:
    good = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    simulation = Simulation([NODE, bad, good])
    assert any(reason in r for r in simulation.rejected), simulation.rejected
    assert simulation.cycle(CONF).bound == {"default/p": "n"}


def test_jobs_of_kubernetes_are_not_expanded() -> None:
    assert not pods(Simulation([NODE, {**job(task(2)), "apiVersion": "batch/v1"}]))
