"""Following objects for `--watch` and `--wait`: a local copy of them, and every change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from volcano_py.api.kinds import ResourceType
from volcano_py.kube.errors import Forbidden

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.kube.informer import Informer

Manifest = dict[str, Any]


class Source(NamedTuple):
    """The objects to follow.

    `optional`: if the user may not list them, the source is empty. `otherwise`: the namespace to follow if the user may
    not list all namespaces. `prepare` converts an object to the part of it that is stored.
    """

    rt: ResourceType
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    optional: bool = False
    otherwise: str = ""
    prepare: Callable[[Manifest], Manifest] | None = None

    @classmethod
    def one(cls, rt: ResourceType, name: str, namespace: str | None = None) -> Source:
        """A single object."""
        return cls(rt, namespace, field_selector=f"metadata.name={name}")


class Change(NamedTuple):
    """A change of one object."""

    rt: ResourceType
    object: Manifest
    deleted: bool = False


class Followed:
    """The current objects of the sources, and their changes."""

    def __init__(
        self,
        stores: Sequence[dict[str, Manifest]],
        changes: asyncio.Queue[Change],
        notes: Sequence[str] = (),
        forbidden: Collection[ResourceType] = (),
        informers: Sequence[Informer[Manifest]] = (),
    ) -> None:
        self.notes = notes
        """One sentence for each source that the user may list only partly or not at all."""
        self.forbidden = frozenset(forbidden)
        """Kinds that the user may not list."""
        self._stores = stores
        self._changes = changes
        self._informers = informers

    @property
    def connected(self) -> bool:
        """Whether all watches are open; otherwise the objects may be stale."""
        return all(informer.connected for informer in self._informers)

    def objects(self, number: int = 0) -> list[Manifest]:
        """The objects of a source, by its index, sorted by name."""
        store = self._stores[number]
        return [store[key] for key in sorted(store)]

    async def next(self, seconds: float | None = None) -> Change | None:
        """The next change; None after `seconds` without one."""
        try:
            return await asyncio.wait_for(self._changes.get(), seconds)
        except TimeoutError:
            return None


@asynccontextmanager
async def following(client: Client, *sources: Source) -> AsyncIterator[Followed]:
    """Follow objects; broken watches are reopened.

    Raises KubeError at the start if the server cannot be reached or rejects the request.
    """
    from volcano_py.kube.informer import Informer

    changes: asyncio.Queue[Change] = asyncio.Queue()
    informers: list[Informer[Manifest]] = []
    stores: list[dict[str, Manifest]] = []
    notes: list[str] = []
    forbidden: list[ResourceType] = []
    for wanted in sources:
        source = await _permitted(client, wanted, notes)
        if source is None:
            forbidden.append(wanted.rt)
            stores.append({})
            continue
        informer: Informer[Manifest] = Informer(
            client,
            source.rt,
            namespace=source.namespace,
            label_selector=source.label_selector,
            field_selector=source.field_selector,
            prepare=source.prepare,
        )
        informers.append(informer)
        stores.append(informer.store)
        _forward(informer, source.rt, changes)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        for informer in informers:
            await informer.synced.wait()
        while not changes.empty():
            changes.get_nowait()  # the stores contain it already
        yield Followed(stores, changes, notes, forbidden, informers)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _permitted(client: Client, source: Source, notes: list[str]) -> Source | None:
    """The part of a source that the user may list; None: nothing. Raises KubeError; Forbidden for mandatory sources.

    An informer retries after every error; this request reports the first error instead.
    """

    async def first(namespace: str | None) -> None:
        await client.list(source.rt, namespace, source.label_selector, source.field_selector, limit=1)

    try:
        await first(source.namespace)
    except Forbidden:
        if source.otherwise and source.namespace is None:
            with contextlib.suppress(Forbidden):
                await first(source.otherwise)
                notes.append(f"you may list {source.rt.plural} of namespace {source.otherwise} only")
                return source._replace(namespace=source.otherwise)
        if not source.optional:
            raise
        notes.append(f"you may not list {source.rt.plural}")
        return None
    return source


def _forward(informer: Any, rt: ResourceType, changes: asyncio.Queue[Change]) -> None:
    informer.on(
        add=lambda obj: changes.put_nowait(Change(rt, obj)),
        update=lambda _, obj: changes.put_nowait(Change(rt, obj)),
        delete=lambda obj: changes.put_nowait(Change(rt, obj, deleted=True)),
    )
