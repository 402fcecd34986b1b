"""Applying a Job again as its author wrote it: defaults that admission adds are not the author's change."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.sandbox.clients import Http, Kubectl

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def task(name: str, replicas: int, **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1", "command": ["sleep", "900"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}


def job(*tasks: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "again"} | ({"labels": labels} if labels else {}),
            "spec": {"tasks": list(tasks), **spec},
        }
    )


async def stored(api: Http) -> dict[str, Any]:
    found: dict[str, Any] = await api.ok("GET", f"{JOBS}/again")
    return found


async def test_an_unchanged_file_is_unchanged(kubectl: Kubectl, api: Http) -> None:
    file = job(task("worker", 2), task("chief", 1, minAvailable=1), plugins={"pytorch": []})
    await kubectl("apply", "-f", "-", stdin=file)
    assert (await stored(api))["spec"]["minAvailable"] == 3
    assert await kubectl("apply", "-f", "-", stdin=file) == "job.batch.volcano.sh/again unchanged\n"


async def test_replicas_labels_and_min_available_are_accepted(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 1), minAvailable=1))
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 2), minAvailable=1))
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 2), minAvailable=2, labels={"team": "a"}))
    now = await stored(api)
    assert now["metadata"]["labels"] == {"team": "a"} and now["spec"]["minAvailable"] == 2
    await kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=job(task("worker", 3), minAvailable=3)
    )
    await kubectl("apply", "--server-side", "-f", "-", stdin=job(task("worker", 3), minAvailable=3))
    await kubectl("replace", "-f", "-", stdin=job(task("worker", 4), minAvailable=1))
    assert (await stored(api))["spec"]["tasks"][0]["replicas"] == 4


async def test_a_default_minimum_follows_the_replicas(kubectl: Kubectl, api: Http) -> None:
    """Fewer replicas were denied because of a minAvailable that the author had never written."""
    for replicas in (3, 1, 2):
        await kubectl("apply", "-f", "-", stdin=job(task("worker", replicas)))
        assert (await stored(api))["spec"]["minAvailable"] == replicas


async def test_a_default_minimum_follows_with_server_side_apply(kubectl: Kubectl, api: Http) -> None:
    for replicas in (3, 1):
        await kubectl("apply", "--server-side", "-f", "-", stdin=job(task("worker", replicas)))
        assert (await stored(api))["spec"]["minAvailable"] == replicas


async def test_a_minimum_that_the_author_wrote_stays(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 2), minAvailable=2))
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 4), minAvailable=2))
    assert (await stored(api))["spec"]["minAvailable"] == 2
    code, _, err = await kubectl.run("apply", "-f", "-", stdin=job(task("worker", 1), minAvailable=2))
    assert code == 1 and "'minAvailable' must not be greater than total replicas" in err


async def test_tasks_without_names_keep_theirs(kubectl: Kubectl, api: Http) -> None:
    unnamed = [{**task("", 1), "name": None}, {**task("", 2), "name": None}]
    for one in unnamed:
        del one["name"]
    await kubectl("apply", "-f", "-", stdin=job(*unnamed))
    unnamed[0]["replicas"] = 2
    await kubectl("apply", "-f", "-", stdin=job(*unnamed))
    assert [one["name"] for one in (await stored(api))["spec"]["tasks"]] == ["default0", "default1"]


async def test_other_fields_are_still_fixed(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 2)))
    code, _, err = await kubectl.run("apply", "-f", "-", stdin=job(task("worker", 2, maxRetry=7), queue="other"))
    assert code == 1 and "spec.queue, spec.tasks[0].maxRetry changed" in err


async def test_a_job_that_volcano_has_stored_is_applied_again(kubectl: Kubectl, api: Http) -> None:
    """Volcano stores the defaults of tasks: minAvailable, maxRetry, and dnsPolicy in the host's network."""
    written = task("worker", 2)
    written["template"]["spec"]["hostNetwork"] = True
    kept = task("worker", 2, minAvailable=2, maxRetry=3)
    kept["template"]["spec"] |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    body = yaml.safe_load(job(kept, minAvailable=2))
    body["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(yaml.safe_load(job(written)))
    }
    await api.ok("POST", JOBS, body)
    await kubectl("apply", "-f", "-", stdin=job(written))
    await kubectl("apply", "-f", "-", stdin=job(written | {"replicas": 3}))
    assert (await stored(api))["spec"]["minAvailable"] == 3


async def test_a_queue_with_a_short_path_is_applied_again(kubectl: Kubectl, api: Http) -> None:
    manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {
            "name": "dev",
            "annotations": {"volcano.sh/hierarchy": "eng/dev", "volcano.sh/hierarchy-weights": "2/8"},
        },
    }
    for _ in range(2):
        await kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
        queue = await api.ok("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/dev")
        assert queue["metadata"]["annotations"]["volcano.sh/hierarchy"] == "root/eng/dev"


async def test_replicas_can_be_edited(kubectl: Kubectl, api: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=job(task("worker", 2), minAvailable=1))
    await kubectl("edit", "vcjob", "again", KUBE_EDITOR="sed -i 's/replicas: 2/replicas: 5/'")
    [worker] = (await stored(api))["spec"]["tasks"]
    assert (worker["replicas"], worker["name"]) == (5, "worker")
