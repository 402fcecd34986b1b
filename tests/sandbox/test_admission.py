"""Volcano's admission rules as the sandbox's clients meet them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.clients import Http

HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
JOBFLOWS = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows"
CRONJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs"
PODS = "/api/v1/namespaces/default/pods"


def hypernode(pattern: str) -> dict[str, Any]:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack"},
        "spec": {"tier": 1, "members": [member]},
    }


def jobflow(target: str) -> dict[str, Any]:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "etl"},
        "spec": {
            "jobRetainPolicy": "retain",
            "flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": [target]}}],
        },
    }


def cronjob(schedule: str) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"minAvailable": 1, "tasks": [task]}}},
    }


def pod(scheduler: str, budget: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": scheduler, "annotations": {"volcano.sh/jdb-min-available": budget}},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "x"}]},
    }


@pytest.mark.parametrize(
    ("path", "good", "bad", "webhook", "message"),
    [
        (
            HYPERNODES,
            hypernode("^n"),
            hypernode("a(b"),
            "validatehypernodes",
            "hypernode rack: spec.members[0].selector",
        ),
        (JOBFLOWS, jobflow("a"), jobflow("b"), "validatejob", "jobflow etl: spec.flows: jobflow Flow is not DAG"),
        (CRONJOBS, cronjob("@daily"), cronjob("daily"), "validatecronjob", "'daily': schedule is not a valid cron"),
    ],
    ids=["hypernodes", "jobflows", "cronjobs"],
)
async def test_denied_at_creation_and_at_updates(
    api: Http, path: str, good: dict[str, Any], bad: dict[str, Any], webhook: str, message: str
) -> None:
    status, answer = await api.call("POST", path, bad)
    assert status == 400, answer
    assert answer["message"].startswith(f'admission webhook "{webhook}.volcano.sh" denied the request: ')
    assert message in answer["message"]
    made = await api.ok("POST", path, good)
    status, answer = await api.call("PUT", f"{path}/{made['metadata']['name']}", made | {"spec": bad["spec"]})
    assert status == 400 and message in answer["message"]


async def test_budgets_of_volcanos_pods_only(api: Http) -> None:
    status, answer = await api.call("POST", PODS, pod("volcano", "0%"))
    assert status == 400 and "pod volcano: metadata.annotations: invalid value <'0%'>" in answer["message"]
    await api.ok("POST", PODS, pod("volcano", "50%"))
    await api.ok("POST", PODS, pod("elsewhere", "0%"))
