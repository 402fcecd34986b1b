"""One run: a cluster, faults and users for some steps, then a quiet end, and what was wrong."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson

from tests.dst import crons, pipes, virtual
from tests.dst.cluster import Cluster
from tests.dst.faults import Faults, Kind
from tests.dst.loop import SimulatedLoop
from tests.dst.network import Network, Place, SimulatedTransport
from tests.dst.oracle import OBSERVED, Oracle
from tests.dst.processes import Process
from tests.dst.quiet import Quiet
from tests.dst.replicas import ControllerReplica, Replica, SchedulerReplica, install
from tests.dst.server import SENDER, WRITER, ApiServer
from tests.dst.situations import Situations
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError

STEPS = 200
LATE = 12
"""The last steps, in which users ask more often for the place of others."""
PRODUCT = ("scheduler", "dispatcher", "controllers")
USERS = ("scheduler", "dispatcher", "controllers", "user", "node", "rival", "garbage-collector")


@dataclass
class Plan:
    """What is to be run; `disabled` are keys of faults and of steps that are left out."""

    seed: str
    steps: int = STEPS
    disabled: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    """Names of the faults; None: drawn from the seed."""

    def document(self) -> dict[str, Any]:
        return {"seed": self.seed, "steps": self.steps, "disabled": sorted(self.disabled),
                "only": None if self.only is None else sorted(self.only)}  # fmt: skip

    @classmethod
    def of(cls, document: dict[str, Any]) -> Plan:
        only = document.get("only")
        return cls(document["seed"], document["steps"], frozenset(document["disabled"]),
                   None if only is None else frozenset(only))  # fmt: skip


@dataclass
class Outcome:
    """What a run has shown."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    injected: dict[tuple[str, str, str], int] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """Keys of the users' steps that did something."""
    seconds: float = 0.0
    virtual_seconds: float = 0.0
    binds: int = 0
    evictions: int = 0
    callbacks: int = 0

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.log).encode()).hexdigest()[:16]


_FAULTS_OF_CODE = (TypeError, AttributeError, KeyError, IndexError, ValueError, AssertionError, RuntimeError)
"""Errors that no fault of the cluster explains."""


_OF_THE_MODEL = ("(model); it was corrected", "(sum); it was corrected")
"""Corrections of the cache audit that no late watch explains: the model disagrees with its own store or with its pods.
Without this the audit would hide, after a minute, what has caused them."""
_ASSUMED = "(assumed); it was corrected"
"""The model counts a bind or an eviction that nothing writes: right only while the watch has not returned a pod."""


class _Lines(logging.Handler):
    """Log lines of the product as lines of the run."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        process = virtual.PROCESS.get()
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" [{record.exc_info[1]!r}]"
            if isinstance(record.exc_info[1], _FAULTS_OF_CODE):
                self._run.wrong(f"an unexpected error: {text}")
        elif (
            "verify-incremental" in text
            or text.endswith(_OF_THE_MODEL)
            or (text.endswith(_ASSUMED) and self._run.pods_delivered())
        ):
            self._run.wrong(text)
        self._run.note(f"{process.name if process is not None else 'server'} {record.levelname.lower()}: {text}")


_UNIMPORTANT = (".resourceVersion", ".managedFields", ".generation", ".status.conditions")


def _difference(old: Any, new: Any, path: str = "") -> str:
    """What differs between two objects, without their versions and the texts of conditions.

    The text of a condition is not written again for each change of the cluster: a new process may say more.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        parts = [_difference(old.get(k), new.get(k), f"{path}.{k}") for k in {**old, **new} if old.get(k) != new.get(k)]
        return "; ".join(part for part in parts if part)
    return "" if path.endswith(_UNIMPORTANT) else f"{path}: {old!r} -> {new!r}"


class Prepared:
    """The API server before the first step: the same for all runs, each of which has a copy (by fork).

    A short run before them loads the modules and types that the product loads on use.
    """

    def __init__(self) -> None:
        install()
        perform(Plan("warm-up", 10, only=frozenset()), self._new(), end=True)
        self.server = self._new()

    def _new(self) -> ApiServer:
        virtual.seed("prepared")
        virtual.STATE.loop = SimulatedLoop("prepared")
        server = ApiServer(USERS)
        virtual.STATE.loop = None
        return server


class Run:
    """The parts of one run."""

    def __init__(self, plan: Plan, server: ApiServer) -> None:
        self.plan = plan
        self.seed = plan.seed
        self.server = server
        self.loop = SimulatedLoop(plan.seed)
        self.lines: list[str] = []
        self.faults = Faults(plan.seed, plan.disabled, plan.only)
        self.network = Network(server, self.faults, self.note, plan.seed)
        self.network.requests = self._request
        self.network.sent = self._sent
        self.network.ended = self._ended
        self.network.recreate = self._recreate
        self.oracle = Oracle()
        self.cluster = Cluster(server, self.faults, plan.seed, self.note)
        self.replicas: list[Replica] = []
        self.steps: list[str] = []
        self.situations = Situations(self)
        self.network.at_bind = self.situations.bind_sent
        self._calls = 0
        self.watching = False
        """Whether changes by the product are collected."""
        self.changes: list[str] = []
        self.last_change = 0.0
        """When the product changed something, without Leases and Events."""

    def note(self, text: str) -> None:
        """A line of the log."""
        self.lines.append(f"{self.loop.now:10.4f} {text}")

    def wrong(self, text: str) -> None:
        """Something that must not be."""
        self.oracle.violations.append(f"{self.loop.now:.3f} s: {text}")
        self.note(f"VIOLATION {text}")

    # ---- observers -------------------------------------------------------------------------------------------

    def _stored(self, collection: Any, event: Any) -> None:
        writer = WRITER.get()
        name = collection.name
        ours = writer in PRODUCT and name not in ("leases.coordination.k8s.io", "events", "configmaps")
        if ours:
            self.last_change = self.loop.now
        if self.watching and ours:
            old = {} if event.prev is None else event.prev.load()
            what = _difference(old, {} if event.type == "DELETED" else event.entry.load())
            self.note(f"changed by {writer}: {name} {event.entry.key}: {what}")
            if what:
                self.changes.append(f"{writer} writes {name} {event.entry.key}: {what[:300]}")
        if name == "pods" and writer == "controllers" and event.type == "ADDED":
            self.situations.pod_created(event.entry.name)
        before = len(self.oracle.violations)
        if name == "leases.coordination.k8s.io" and event.entry.name == "volcano":
            holder = (event.entry.load().get("spec") or {}).get("holderIdentity") or ""
            self.oracle.lease(self.loop.now, SENDER.get(), holder)
        self.oracle.trees = self.cluster.trees
        if name == crons.JOBS and event.type == "ADDED" and writer == "controllers":
            job = event.entry.load()
            wrong = self.cluster.crons.created(self.loop.now, job, self.oracle.restored_at)
            for text in (*wrong, *self.cluster.flows.created(job)):
                self.oracle.violations.append(f"{self.loop.now:.3f} s: {text}")
        if name in OBSERVED:
            self.oracle.observe(self.loop.now, writer, name, event.type, event.entry.load())
        self._report(before)

    def _report(self, before: int) -> None:
        """Note what the oracle has found since."""
        for text in self.oracle.violations[before:]:
            self.note(f"VIOLATION {text}")

    def _sent(self, process: Process, verb: str, place: Place) -> None:
        before = len(self.oracle.violations)
        key = f"{place.namespace}/{place.name}" if place.namespace else place.name
        self.oracle.sent(self.loop.now, process.name, verb, place.plural, key)
        self._report(before)

    def _ended(self, place: Place, late: bool) -> None:
        self.oracle.ended(place.plural, f"{place.namespace}/{place.name}")
        if late:  # to a dispatcher the API server is out of reach: it starts no other write for a while
            self.oracle.disturbed(self.loop.now)

    async def _recreate(self, place: Place) -> None:
        await self.cluster.recreate(place.name)

    def _request(self, process: str, verb: str, place: Place, status: int) -> None:
        before = len(self.oracle.violations)
        component = "dispatcher" if "/" in process else "controllers" if process.startswith("c") else "scheduler"
        key = f"{place.namespace}/{place.name}" if place.namespace else place.name
        self.oracle.requested(self.loop.now, component, verb, place.plural, key if place.name else "")
        if status < 300:
            self.oracle.acknowledged(self.loop.now, verb, place.plural, key)
        self._report(before)

    def _admission(self) -> None:
        """Put the faults of webhooks before Volcano's rules."""
        for chain in (self.server.api.mutating, self.server.api.validating):
            for resource, rules in chain.items():
                rules[:] = [self._unreliable(resource, rule) for rule in rules]

    def _unreliable(self, resource: str, rule: Any) -> Any:
        async def admit(attributes: Any) -> None:
            self._calls += 1
            fault = self.faults.of_admission(resource, attributes.operation, self._calls)
            if fault.kind == "delay":
                await asyncio.sleep(fault.seconds)
            elif fault.kind:
                text = f"Internal error occurred: failed calling webhook of {resource}: connection refused (injected)"
                raise StatusError(500, "InternalError", text)
            await rule(attributes)

        return admit

    # ---- the run ---------------------------------------------------------------------------------------------

    async def main(self) -> None:
        random = Random(f"{self.seed} cluster")
        self.server.start()
        self.server.api.store.listeners.append(self._stored)
        self.loop.create_task(self._kubelets())
        await self.cluster.begin(random)
        self._admission()
        self.note(f"configuration {self.cluster.configuration}, faults: {', '.join(self.faults.rates) or 'none'}")
        for i in range(random.choice((1, 2, 2, 2))):
            scheduler = SchedulerReplica(self.loop, f"s{i}", "scheduler", self.note)
            scheduler.verify = virtual.chance(self.seed, "verify") < 0.2
            scheduler.profiles = self.cluster.profiles
            scheduler.sharded = self.oracle.sharded = self.cluster.shards.used
            self.replicas.append(scheduler)
        for i in range(random.choice((1, 1, 2))):
            manager = ControllerReplica(self.loop, f"c{i}", "controllers", self.note)
            manager.more = self.cluster.controllers
            self.replicas.append(manager)
        for replica in self.replicas:
            self.loop.call_later(random.random(), replica.start)
        # The first start is without faults; every later one is not.
        self.faults.active = False
        while not any(isinstance(r, SchedulerReplica) and r.leading for r in self.replicas) and self.loop.now < 60:
            await asyncio.sleep(0.5)
        self.faults.active = True
        for number in range(self.plan.steps):
            await self._step(number)
        await Quiet(self).check()

    async def end(self) -> None:
        """End all tasks but this one."""
        for replica in self.replicas:
            replica.wanted = False
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.sleep(1.0)

    async def _kubelets(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            await self.cluster.kubelets(self.loop.now)

    async def _step(self, number: int) -> None:
        random = Random(f"{self.seed} step {number}")
        await asyncio.sleep(random.expovariate(2.0))
        self.faults.now = self.loop.now
        key = f"user|step {number}"
        if key not in self.plan.disabled:
            before = self.server.api.store.revision
            await self.cluster.step(number, number >= self.plan.steps - LATE)
            if self.server.api.store.revision != before:
                self.steps.append(key)
        kind = self.faults.of_step("cluster", number)
        if kind is not None:
            self.note(f"fault: {kind.name}")
            if kind.kind == "reload":
                self.oracle.disturbed(self.loop.now)
            await self.cluster.fault(kind, number, self.loop.now)
        kind = self.faults.of_step("process", number)
        if kind is not None:
            await self._break(kind, number)
        kind = self.faults.of_step("situation", number)
        if kind is not None:
            await self.situations.prepare(kind, number)

    async def _break(self, kind: Kind, number: int) -> None:
        """Inject a fault of the layer `process`."""
        self.oracle.disturbed(self.loop.now)
        random = Random(f"{self.seed} {kind.name} {number}")
        replica = random.choice(self.replicas)
        seconds = 1 + kind.longest * random.random()
        schedulers = [r for r in self.replicas if isinstance(r, SchedulerReplica)]
        match kind.kind:
            case "kill decider":
                replica = random.choice(schedulers)
                replica.kill()
            case "kill controllers":
                replica = random.choice([r for r in self.replicas if isinstance(r, ControllerReplica)])
                replica.kill()
            case "kill dispatcher":
                replica = random.choice(schedulers)
                for process in replica.processes()[1:]:
                    process.kill()
            case "stop":
                self._stop(random, replica.processes(), seconds)
            case "cut off":
                self._cut_off(replica.processes(), seconds)
            case "jump":
                replica.clock.jumped += random.choice((-3600.0, -5.0, 5.0, 3600.0))
            case "drift":
                replica.clock.drift(self.loop.now, random.choice((0.97, 1.0, 1.03)))
            case "steal lease":
                await self._steal()
            case "restore":
                if not self._delivered():
                    return
                await self._restore(random)
        self.note(f"fault: {kind.name}: {replica.name}")
        self.faults.did(kind, number, replica.component)

    def _cut_off(self, processes: list[Process], seconds: float) -> None:
        for process in processes:
            process.cut_off = True
        self.loop.call_later(seconds, self._connect, processes)

    def _connect(self, processes: list[Process]) -> None:
        self.oracle.disturbed(self.loop.now)
        for process in processes:
            process.cut_off = False

    def _stop(self, random: Random, processes: list[Process], seconds: float) -> None:
        if processes:
            process = random.choice(processes)
            process.stop()
            self.loop.call_later(seconds, self._go_on, process)

    def _go_on(self, process: Process) -> None:
        self.oracle.disturbed(self.loop.now)
        if process.stopped:
            process.go_on()

    async def _steal(self) -> None:
        """Another candidate takes the Lease for a moment, and disappears."""
        path = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"
        status, lease = await self.server.call("user", "GET", path)
        if status == 200:
            lease["spec"]["holderIdentity"] = "another"
            await self.server.call("user", "PUT", path, lease)

    def _delivered(self) -> bool:
        """Whether all schedulers have received all events of pods. A bind that was acknowledged and lost before any
        watch returned it stays assumed: only a comparison with a fresh list can show that."""
        return self.pods_delivered() and self.loop.now - self.oracle.bound_at > 1.0

    def pods_delivered(self) -> bool:
        """Whether the watches of pods of all schedulers are open and have returned all that has happened."""
        pods = [stream for stream in self.network.streams if stream.place.plural == "pods"]
        following = [stream.process for stream in pods]
        deciders = [r.process for r in self.replicas if isinstance(r, SchedulerReplica) and r.process is not None]
        return all(stream.idle for stream in pods) and all(decider in following for decider in deciders)

    async def _restore(self, random: Random) -> None:
        """The state of some seconds ago, with new versions; all watches have to list again."""
        store = self.server.api.store
        back = store.revision - random.randint(1, 30)
        for name in ("pods", "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh"):
            collection = store.collections[name]
            if back < collection.floor:
                continue
            old = {entry.key: entry for entry in collection.at(back)}
            self.oracle.restored(self.loop.now + 0.001)
            for key in list(collection.keys):
                if key not in old:
                    entry = collection.entries[key]
                    store.commit(collection, "DELETED", entry.load(), entry.fields)
            for key, entry in old.items():
                now = collection.entries.get(key)
                if now is None or now.rv != entry.rv:
                    store.commit(collection, "MODIFIED" if now else "ADDED", entry.load(), entry.fields)
            collection.history.clear()
            collection.floor = store.revision
            self.oracle.restored(self.loop.now)
        for watcher in list(self.server.server.watchers):
            watcher.close()


def perform(plan: Plan, server: ApiServer, end: bool = False) -> Outcome:
    """Run a plan in this process, and `end` what still runs then. The API server is used up by it."""
    began = virtual.real_seconds()
    outcome = Outcome(plan)
    virtual.seed(plan.seed)
    pipes.reset()
    run = Run(plan, server)
    virtual.STATE.loop = run.loop
    SimulatedTransport.network = run.network
    root = logging.getLogger()
    handler, level = _Lines(run), root.level
    handlers, root.handlers = root.handlers, [handler]
    asyncio.set_event_loop(run.loop)
    run.loop.on_error = lambda context: run.note(f"unhandled: {context.get('message')}: {context.get('exception')!r}")
    try:
        task = run.loop.create_task(run.main(), name="run")
        run.loop.run_until_complete(task)
        if end:
            run.loop.run_until_complete(run.end())
    except Exception as error:
        run.oracle.violations.append(f"{run.loop.now:.3f} s: the run ended with {error!r}")
        run.note(f"VIOLATION the run ended with {error!r}")
        outcome.log.append(repr(error))
        if not isinstance(error, AssertionError):
            import traceback

            run.note(traceback.format_exc())
    finally:
        virtual.STATE.loop = None
        root.handlers = handlers
        root.setLevel(level)
        asyncio.set_event_loop(None)
    outcome.violations = run.oracle.violations
    outcome.log = run.lines
    outcome.injected = dict(run.faults.injected)
    outcome.keys = list(run.faults.keys)
    outcome.steps = run.steps
    outcome.virtual_seconds = run.loop.now
    outcome.binds, outcome.evictions = run.oracle.binds, run.oracle.evictions
    outcome.callbacks = run.loop.callbacks
    outcome.seconds = virtual.real_seconds() - began
    return outcome


def document(outcome: Outcome) -> bytes:
    """An outcome as JSON."""
    return orjson.dumps(
        {
            "plan": outcome.plan.document(),
            "violations": outcome.violations,
            "log": outcome.log,
            "injected": [[*key, count] for key, count in outcome.injected.items()],
            "keys": outcome.keys,
            "steps": outcome.steps,
            "seconds": outcome.seconds,
            "virtual_seconds": outcome.virtual_seconds,
            "binds": outcome.binds,
            "evictions": outcome.evictions,
            "callbacks": outcome.callbacks,
        }
    )


def of_document(data: bytes) -> Outcome:
    """The outcome of such a document."""
    found = orjson.loads(data)
    found["plan"] = Plan.of(found["plan"])
    found["injected"] = {(a, b, c): count for a, b, c, count in found["injected"]}
    return Outcome(**found)
