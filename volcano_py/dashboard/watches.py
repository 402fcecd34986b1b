"""The dashboard's watches: local copies of what pages show, for as long as there are viewers.

Watches start with the first viewer and end a minute after the last one; the stores stay, and the next viewer's watches
go on from their versions. What the user may not list, what the cluster does not serve, what does not decode and an API
server that does not answer are facts that pages show; nothing of it stops the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from volcano_py.dashboard.kept import WATCHED, Kind
from volcano_py.kube.errors import ApiError, Forbidden, KubeError, NotFound, Silent
from volcano_py.kube.informer import Informer
from volcano_py.kube.remedies import remedy
from volcano_py.kube.served import served

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.kube.wire import Undecodable

LINGER = 60.0
"""Seconds after which watches end when the last viewer has left."""
SILENCE = 3.0
"""Seconds without a connection after which data counts as old: watches are opened again every few minutes."""


class Missing(NamedTuple):
    """What is not shown: `what` in one sentence, and how an administrator changes that."""

    what: str
    remedy: str


class Health(NamedTuple):
    """The state of the data of a page. `stale`: its age in seconds, None while it is live."""

    loading: bool
    stale: float | None
    error: str
    missing: tuple[Missing, ...]
    quarantined: tuple[str, ...]


class Watches:
    """The informers of all kinds. `namespace`: the one that is watched where the user may not list all of them."""

    def __init__(self, client: Client, namespace: str, kinds: tuple[Kind, ...] = WATCHED) -> None:
        self.revision = 0
        """Grows with every change."""
        self._client = client
        self._namespace = namespace
        self._kinds = {kind.name: kind for kind in kinds}
        self._informers: dict[str, Informer[Any]] = {}
        self._narrowed: dict[str, str] = {}
        self._absent: set[str] = set()
        """Kinds that the cluster does not serve, as most clusters: nothing is missing."""
        self._undecodable: dict[tuple[str, str], str] = {}
        self._viewers = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: asyncio.TimerHandle | None = None
        self._live = 0.0

    # ---- what is seen

    def objects(self, name: str) -> dict[str, Any]:
        """The objects of a kind by key; read it, do not write it."""
        informer = self._informers.get(name)
        return informer.store if informer is not None else {}

    def may_list(self, name: str) -> bool:
        """Whether a kind is served and the user may list it."""
        informer = self._informers.get(name)
        return informer is None or not isinstance(informer.error, Forbidden | NotFound)

    def loaded(self, *names: str) -> bool:
        """Whether these kinds were listed, or may not be."""
        return all(name in self._informers and self._informers[name].synced.is_set() for name in names)

    def why_not(self, name: str) -> str:
        """Why a kind is not listed, in one sentence; empty if it is."""
        found = self.missing(name)
        return found.what if found is not None else ""

    def missing(self, name: str) -> Missing | None:
        """The same with the remedy; None if it is listed, or most clusters do not serve it."""
        informer = self._informers.get(name)
        problem = informer.error if informer is not None else None
        if not isinstance(problem, Forbidden | NotFound) or name in self._absent:
            return None
        return _missing(self._kinds[name], problem)

    def health(self) -> Health:
        """The state of the watches now."""
        missing: list[Missing] = []
        error = ""
        connected = bool(self._tasks)
        loading = connected and not self.loaded(*self._kinds)
        for name, informer in self._informers.items():
            kind = self._kinds[name]
            problem = informer.error
            if isinstance(problem, Forbidden | NotFound):
                if name in self._absent or kind.own_page:
                    continue
                missing.append(_missing(kind, problem))
            elif not informer.connected and problem is not None and not isinstance(problem, Silent):
                error, connected = str(problem), False
        missing += [Missing(what, "") for what in self._narrowed.values()]
        now = time.monotonic()
        if connected or not self._tasks:
            self._live = now
        silent = now - self._live
        stale = silent if silent > SILENCE else None
        unique = tuple(dict.fromkeys(missing))
        return Health(loading, stale, error if stale else "", unique, tuple(sorted(self._undecodable.values())))

    # ---- when it watches

    @contextlib.contextmanager
    def viewer(self) -> Iterator[None]:
        """Counts a viewer while the context lasts."""
        self.join()
        try:
            yield
        finally:
            self.leave()

    def join(self) -> None:
        """A viewer has come."""
        self._viewers += 1
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if not self._tasks:
            self._live = time.monotonic()
            self._tasks = [asyncio.create_task(self._run(kind)) for kind in self._kinds.values()]

    def leave(self) -> None:
        """A viewer has left."""
        self._viewers -= 1
        if not self._viewers and self._tasks:
            self._ending = asyncio.get_running_loop().call_later(LINGER, self.stop)

    def stop(self) -> None:
        """End all watches; what is known stays."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def synced(self) -> None:
        """Wait until every kind was listed once, or may not be."""
        while len(self._informers) < len(self._kinds):
            await asyncio.sleep(0.01)
        for informer in self._informers.values():
            await informer.synced.wait()

    async def _run(self, kind: Kind) -> None:
        if kind.versions:
            with contextlib.suppress(KubeError):
                rt = await served(self._client, kind.versions)
                kind = kind._replace(rt=rt or kind.rt)
                (self._absent.discard if rt is not None else self._absent.add)(kind.name)
        if kind.name not in self._informers:
            self._informers[kind.name] = self._informer(kind, await self._namespace_for(kind))
        informer = self._informers[kind.name]
        listed = asyncio.create_task(self._listed(informer))
        try:
            await informer.run()
        finally:
            listed.cancel()

    async def _listed(self, informer: Informer[Any]) -> None:
        """That there is nothing of a kind is a change of what was not known before."""
        await informer.synced.wait()
        self.revision += 1

    async def _namespace_for(self, kind: Kind) -> str | None:
        """The namespace to watch; None: all of them. The informer calls a server that does not answer again."""
        if not kind.rt.namespaced or not self._namespace:
            return None
        selector = _selector(kind)
        try:
            await self._client.list(kind.rt, None, field_selector=selector, limit=1)
        except Forbidden:
            with contextlib.suppress(KubeError):
                await self._client.list(kind.rt, self._namespace, field_selector=selector, limit=1)
                self._narrowed[kind.name] = f"You may list {kind.plural} of namespace {self._namespace} only."
                return self._namespace
        except KubeError:
            pass
        return None

    def _informer(self, kind: Kind, namespace: str | None) -> Informer[Any]:
        informer: Informer[Any] = Informer(
            self._client,
            kind.rt,
            kind.type,
            namespace=namespace,
            field_selector=_selector(kind),
            prepare=kind.prepare,
            decode_error=lambda found: self._quarantine(kind, found),
            decode_error_cleared=lambda key: self._cleared(kind, key),
            optional=True,
            versions=kind.versions,
        )
        return informer.on(add=self._changed, update=lambda old, new: self._changed(new), delete=self._changed)

    def _changed(self, _: object) -> None:
        self.revision += 1

    def _quarantine(self, kind: Kind, found: Undecodable) -> None:
        key = f"{found.namespace}/{found.name}".lstrip("/")
        self._undecodable[kind.rt.kind, key] = f"{kind.rt.kind} {key}: {found.error}"
        self.revision += 1

    def _cleared(self, kind: Kind, key: str) -> None:
        self._undecodable.pop((kind.rt.kind, key), None)
        self.revision += 1


def _selector(kind: Kind) -> str | None:
    return f"reason={kind.reason},involvedObject.kind=Pod" if kind.reason else None


def _missing(kind: Kind, problem: ApiError) -> Missing:
    plural, what = kind.plural, remedy(problem, kind.rt, ("list", "watch"))
    if isinstance(problem, NotFound):
        return Missing(f"The cluster has no {plural}: their definition is not installed.", what)
    return Missing(f"You may not list {plural}.", what)
