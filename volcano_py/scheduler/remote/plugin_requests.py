"""The requests of profile plugins to other programs. kube-scheduler: plugins send such requests themselves, with the
clients of their handle.

It watches objects of the kinds that plugins read, writes their patches, and sends their HTTP calls. No request delays
the scheduler: responses are inputs of later attempts.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import orjson

from volcano_py.api.resource_types import ResourceType
from volcano_py.kube import ApiError, Client, KubeError
from volcano_py.kube.informer import Informer
from volcano_py.scheduler.profiles.decisions import Ask, Patch
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call, Tls
from volcano_py.scheduler.remote.http import CallError, call, decoded

log = logging.getLogger(__name__)

_AT_ONCE = 16
"""Concurrent calls to one server."""
_PAUSE = 1.0
"""Seconds between attempts to find a kind, or to write a patch."""
_MOST_ATTEMPTS = 60


class PluginRequests:
    """`reads` returns the kinds that plugins read now. `changed` receives (kind, old, new) of their objects, and
    `answered` the result of a call."""

    def __init__(
        self,
        reads: Callable[[], frozenset[ObjectKind]],
        changed: Callable[[Any, Any], None],
        answered: Callable[[str, Answer], None],
    ) -> None:
        self._reads = reads
        self._changed = changed
        self._answered = answered
        self._client: Client | None = None
        self._http: aiohttp.ClientSession | None = None
        self._informers: dict[ObjectKind, Informer[Any]] = {}
        self._kinds: dict[ObjectKind, ResourceType] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks so that patches of one object are written one after the other."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: dict[str, str] = {}

    async def run(self, client: Client) -> None:
        """Watch the objects until cancelled."""
        self._client = client
        async with aiohttp.ClientSession() as self._http:
            watching: dict[ObjectKind, asyncio.Task[None]] = {}
            try:
                while True:
                    needed = self._reads()
                    for kind in watching.keys() - needed:
                        watching.pop(kind).cancel()
                        self._informers.pop(kind, None)
                    for kind in needed - watching.keys():
                        watching[kind] = asyncio.create_task(self._watch(client, kind))
                    for task in watching.values():
                        if task.done():
                            task.result()
                    await asyncio.sleep(_PAUSE)
            finally:
                for task in (*watching.values(), *self._tasks):
                    task.cancel()

    def replay(self) -> None:
        """Report all objects again, to new profiles."""
        for informer in self._informers.values():
            for found in list(informer.store.values()):
                self._changed(None, found)

    def send(self, request: Ask | Patch) -> None:
        """Send a call, or write a patch."""
        work = self._patch(request) if isinstance(request, Patch) else self._call(request)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- objects ----------------------------------------------------------------------------------------

    async def _watch(self, client: Client, kind: ObjectKind) -> None:
        resource = await self._resource(client, kind)
        informer: Informer[Any] = Informer(client, resource, optional=True)
        informer.on(
            lambda new: self._changed(None, self._typed(kind, new)),
            lambda old, new: self._changed(old, self._typed(kind, new)),
            lambda last: self._changed(self._typed(kind, last), None),
        )
        self._informers[kind] = informer
        await informer.run()

    def _typed(self, kind: ObjectKind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Set apiVersion and kind, which objects in a list lack."""
        manifest.setdefault("apiVersion", kind.api_version)
        manifest.setdefault("kind", kind.kind)
        return manifest

    async def _resource(self, client: Client, kind: ObjectKind) -> ResourceType:
        """The resource of a kind; waits until the API server serves it."""
        while kind not in self._kinds:
            group, _, version = kind.api_version.rpartition("/")
            try:
                found = orjson.loads(
                    await client.raw("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
                )
                for r in found.get("resources") or ():
                    if r["kind"] == kind.kind and "/" not in r["name"]:
                        self._kinds[kind] = ResourceType(group, version, r["name"], kind.kind, r["namespaced"])
                        self._report(str(kind), "")
                        return self._kinds[kind]
                problem = "the API server does not serve this kind"
            except (KubeError, OSError, orjson.JSONDecodeError) as e:
                problem = str(e)
            self._report(f"{kind.kind} of {kind.api_version}, which a plugin reads", problem)
            await asyncio.sleep(_PAUSE)
        return self._kinds[kind]

    # ---- patches ----------------------------------------------------------------------------------------

    async def _patch(self, patch: Patch) -> None:
        name = f"{patch.kind.kind} {patch.key}"
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            await self._write(patch, name)

    async def _write(self, patch: Patch, name: str) -> None:
        """Write a patch; retry while the API server cannot be reached."""
        for _ in range(_MOST_ATTEMPTS):
            try:
                assert self._client is not None
                resource = await self._resource(self._client, patch.kind)
                namespace, _, short = patch.key.rpartition("/")
                sub = "status" if patch.status else None
                await self._client.patch(resource, short, dict(patch.patch), namespace or None, subresource=sub)
                self._report(name, "")
                return
            except ApiError as e:
                self._report(name, str(e))
                if 400 <= e.status < 500 and e.status not in (409, 429):
                    return
                if e.status == 409 and "resourceVersion" in patch.patch.get("metadata", {}):
                    return  # the object has changed since the patch was decided
            except (KubeError, OSError) as e:
                self._report(name, str(e))
            await asyncio.sleep(_PAUSE)

    # ---- calls ------------------------------------------------------------------------------------------

    async def _call(self, ask: Ask) -> None:
        server = ask.call.url.split("/", 3)[2] if "//" in ask.call.url else ask.call.url
        async with self._slots.setdefault(server, asyncio.Semaphore(_AT_ONCE)):
            try:
                answer = Answer(await self._post(ask.call))
            except CallError as e:
                answer = Answer(error=str(e))
        self._report(f"plugin server {server}", answer.error)
        if ask.number:
            self._answered(ask.number, answer)

    async def _post(self, request: Call) -> Any:
        try:
            data = orjson.dumps(request.body(), option=orjson.OPT_NON_STR_KEYS)
            verify = _context(request.tls) if request.tls is not None else True
        except (TypeError, ValueError, OSError) as e:
            raise CallError(f"the call cannot be made: {e}") from None
        assert self._http is not None
        return decoded(await call(self._http, "POST", request.url, request.timeout, data=data, verify=verify))

    def _report(self, what: str, problem: str) -> None:
        """Log one line when a problem begins, and one when it ends."""
        known = self._problems.get(what, "")
        if problem and problem != known:
            log.warning("%s: %s", what, problem)
            self._problems[what] = problem
        elif known and not problem:
            del self._problems[what]
            log.info("%s: works again", what)


@functools.lru_cache(maxsize=64)
def _context(tls: Tls) -> ssl.SSLContext | bool:
    """The TLS settings of a connection to a server."""
    if tls == Tls():
        return True
    context = ssl.create_default_context(cafile=tls.ca_file or None)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
    return context
