"""CronJobs in a fifth of the runs, and what must hold of their Jobs. Plain objects, and nothing of the product."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from tests.dst import manifests
from tests.dst.oracle import owned_by, state_of
from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer
from tests.dst.virtual import EPOCH

Object = dict[str, Any]

CRONJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs"
JOBS, KIND = "jobs.batch.volcano.sh", "cronjobs.batch.volcano.sh"
SCHEDULED = "volcano.sh/cronjob-scheduled-timestamp"
EVERY = 40
"""Seconds between two starts."""
ENDED = ("Completed", "Failed", "Terminated")
SUSPENDED_AT = 70.0
"""Seconds after the faults until which CronJobs start Jobs."""


class CronJobs(Part):
    """The CronJobs of a run."""

    name = "cronjobs"
    share = 0.2

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)
        self._started: dict[str, float] = {}
        """By UID of a CronJob: when its last Job was created."""
        self._starts: set[tuple[str, str]] = set()
        """UID of each CronJob and the times of its starts."""
        self._suspended = False

    async def begin(self, queue: str) -> None:
        """One or two CronJobs."""
        if not self.used:
            return
        random = Random(f"{self._seed} cronjobs")
        for i in range(random.randint(1, 2)):
            template = manifests.job("x", random, queue)["spec"]
            template["tasks"][0]["replicas"] = template["minAvailable"] = 1
            spec = {
                "schedule": f"@every {EVERY}s",
                "concurrencyPolicy": random.choice(("Allow", "Forbid", "Forbid", "Replace")),
                "successfulJobsHistoryLimit": 1,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"spec": template},
            }
            body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": f"c{i}"}}
            await self._call("POST", CRONJOBS, {**body, "spec": spec}, "user")

    def created(self, now: float, job: Object, restored_at: float) -> list[str]:
        """What is wrong with a Job that was created just now."""
        owners = job["metadata"].get("ownerReferences") or ()
        cron = next((o for o in owners if o["kind"] == "CronJob" and o.get("controller")), None)
        if cron is None:
            return []
        uid, at = cron["uid"], job["metadata"]["annotations"][SCHEDULED]
        self._started[uid] = now
        wrong = []
        found = self._server.objects(KIND).get(f"default/{cron['name']}", {})
        last = (found.get("status") or {}).get("lastScheduleTime")
        # As in Kubernetes, only the status says which time has had its Job, when that Job is gone.
        noted = bool(last) and datetime.fromisoformat(last) >= datetime.fromisoformat(at)
        if (uid, at) in self._starts and noted and now - restored_at > 60:
            wrong.append(f"CronJob {cron['name']} starts a second Job for {at}")
        self._starts.add((uid, at))
        spec = found.get("spec") or {}
        if spec.get("concurrencyPolicy") == "Forbid":
            others = [name for name, one in self._jobs(uid).items() if one["metadata"]["uid"] != job["metadata"]["uid"]]
            if others and now - restored_at > 60:
                wrong.append(f"CronJob {cron['name']} forbids a second Job, and has {others[0]} beside the new one")
        return wrong

    def _jobs(self, uid: str) -> dict[str, Object]:
        """The Jobs of a CronJob that have not ended."""
        return {
            name: job
            for name, job in self._server.objects(JOBS).items()
            if owned_by(job, uid) and state_of(job) not in ENDED and not job["metadata"].get("deletionTimestamp")
        }

    async def left(self, now: float, spent: float) -> list[str]:
        """What should have happened `spent` seconds after the faults. Suspends the CronJobs, so that the cluster comes
        to rest."""
        if not self.used or spent < SUSPENDED_AT or self._suspended:
            return []
        self._suspended = True
        found = []
        for name, cron in self._server.objects(KIND).items():
            uid = cron["metadata"]["uid"]
            busy = cron["spec"].get("concurrencyPolicy") == "Forbid" and self._jobs(uid)
            last = (cron.get("status") or {}).get("lastScheduleTime")
            # As in Kubernetes, a start in the future is the last one: a clock was ahead, and is right again.
            busy = busy or (last and datetime.fromisoformat(last).timestamp() > EPOCH + now)
            if now - self._started.get(uid, -1e9) > 2 * EVERY and not busy:
                found.append(f"CronJob {name} has started no Job for {2 * EVERY} s")
            path = f"{CRONJOBS}/{name.partition('/')[2]}"
            await self._call("PATCH", path, {"spec": {"suspend": True}}, "user")
        return found
