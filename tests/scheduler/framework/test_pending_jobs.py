"""Whether a job waits is known after each event as if all jobs were read again."""

from __future__ import annotations

from random import Random

from tests.scheduler.model.test_awaited_groups import CREATED, cluster, decided, pod
from volcano_py.scheduler.framework.jobs.pending_jobs import any_waits, waits
from volcano_py.simulate.manifests import as_struct


def test_after_each_event_and_cycle_it_is_what_the_jobs_say() -> None:
    random = Random(5)
    made = cluster()
    seen = set()
    for step in range(300):
        number = random.randrange(6)
        if random.random() < 0.4:
            made.remove("Pod", "default", f"p{number}")
        else:
            manifest = pod(number=number)
            manifest["metadata"]["uid"] += f"-{step}"
            manifest["status"]["phase"] = random.choice(("Pending", "Pending", "Running", "Succeeded"))
            if manifest["status"]["phase"] != "Pending":
                manifest["spec"]["nodeName"] = "gone"
            made.upsert("Pod", as_struct(manifest))
        if random.random() < 0.3:
            decided(made, CREATED + step)
        found = any_waits(made)
        assert found == any(waits(job) for job in made.jobs.values())
        seen.add(found)
    assert seen == {True, False}
