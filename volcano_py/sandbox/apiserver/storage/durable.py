"""Durable writes: writes the store's changes to the data folder in groups, and delays responses until they are
committed. Kubernetes: etcd's write-ahead log.

All reads use the store. Its writes of one turn of the event loop are one transaction; `settled` delays the response to
a client until everything that the client could have read is committed. So every response survives a kill -9, and (with
`fsync`) a power failure.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from volcano_py.sandbox.apiserver.apimachinery.errors import internal
from volcano_py.sandbox.apiserver.storage.database import Database, DataError, Row, row
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, Collection, Entry, Event, Store

LOG = logging.getLogger(__name__)

Decode = Callable[[Collection, int, bytes], Entry]
"""Decodes an entry from a collection, a revision and stored bytes; raises ValueError, KeyError or TypeError."""

KEPT_REVISIONS = 5_000  # from which watches can continue after a restart
REMOVED_AT_ONCE = 500  # superseded rows that one transaction deletes, to limit its duration
CHECKPOINT_BYTES = 16 * 1024 * 1024  # written since the last one
LOG_LIMIT = 64 * 1024 * 1024  # size of the write-ahead log at which writes pause until it is truncated


class Durable:
    """Writes a store to a data folder, and restores it."""

    def __init__(self, database: Database, *, fsync: bool = False) -> None:
        self.database = database
        self.fsync = fsync
        self.failure = ""  # why writes are impossible
        self.pending: list[Row] = []
        # (revision of an event, the revision whose row can be deleted once that event is compacted)
        self.superseded: deque[tuple[int, int]] = deque()
        self.waiting: list[asyncio.Future[None]] = []
        self.scheduled = False
        self.committing: list[asyncio.Future[None]] | None = None
        self.unsaved = 0  # bytes since the last checkpoint
        self.checkpointing = False
        self.truncate = False  # the log exceeds LOG_LIMIT: pause writes after the commit that is running
        self.threads = ThreadPoolExecutor(2, thread_name_prefix="durable")

    # --- from the store ----------------------------------------------------------------------------------------------

    def observe(self, collection: Collection, event: Event) -> None:
        """Add a write; it is committed with the others of this turn."""
        self.pending.append(row(event.rv, event.type, collection.name, event.entry.key, event.entry.tail))
        self._supersede(event)
        if not self.scheduled and self.committing is None:
            self.scheduled = True
            asyncio.get_running_loop().call_soon(self._commit)

    def _supersede(self, event: Event) -> None:
        if event.prev is not None:
            self.superseded.append((event.rv, event.prev.rv))
        if event.type == DELETED:
            self.superseded.append((event.rv, event.rv))

    # --- to the folder -----------------------------------------------------------------------------------------------

    async def settled(self) -> None:
        """Wait until all previous writes are committed; StatusError when that fails."""
        if self.pending and not self.failure:
            waiter = asyncio.get_running_loop().create_future()
            self.waiting.append(waiter)
            await waiter
        elif self.committing is not None:
            waiter = asyncio.get_running_loop().create_future()
            self.committing.append(waiter)
            await waiter
        if self.failure:
            raise internal(self.failure)

    def _commit(self) -> None:
        """Commit one transaction with all pending writes; only the wait for the disk runs in another thread."""
        self.scheduled = False
        if self.failure or self.committing is not None:
            return
        rows, self.pending = self.pending, []
        waiters, self.waiting = self.waiting, []
        try:
            self._write(rows)
            if not self.fsync:
                self.database.commit()
        except sqlite3.Error as error:
            self._fail(error, waiters)
            return
        if not self.fsync:
            _wake(waiters)
            self._checkpoint_if_due()
            return
        self.committing = waiters
        future = asyncio.get_running_loop().run_in_executor(self.threads, self.database.commit)
        future.add_done_callback(self._committed)

    def _write(self, rows: list[Row]) -> None:
        self.database.begin()
        self.database.add(rows)
        self.unsaved += sum(len(found.tail) for found in rows) + 4096
        oldest = rows[-1].revision - KEPT_REVISIONS
        if self.superseded and self.superseded[0][0] <= oldest:
            gone: list[int] = []
            compacted = 0
            while self.superseded and self.superseded[0][0] <= oldest and len(gone) < REMOVED_AT_ONCE:
                compacted, revision = self.superseded.popleft()
                gone.append(revision)
            # a deletion has two rows: both are deleted before its revision counts as compacted
            while self.superseded and self.superseded[0][0] == compacted:
                gone.append(self.superseded.popleft()[1])
            self.database.remove(gone, compacted)

    def _committed(self, future: asyncio.Future[None]) -> None:
        waiters, self.committing = self.committing or [], None
        error = future.exception()
        if error is not None:
            self._fail(error, waiters)
            return
        _wake(waiters)
        if self.truncate:
            self._pause()
            return
        self._checkpoint_if_due()
        if self.pending:
            self._commit()

    def _fail(self, error: BaseException, waiters: list[asyncio.Future[None]]) -> None:
        """Stop acknowledging writes: from now on the memory is ahead of the folder."""
        self.failure = (
            f"cannot write {self.database.path} ({error}); free disk space or choose another folder, and start again"
        )
        LOG.error("%s", self.failure)
        _wake([*waiters, *self.waiting])
        self.waiting = []

    def _checkpoint_if_due(self) -> None:
        if self.unsaved < CHECKPOINT_BYTES or self.checkpointing:
            return
        self.unsaved, self.checkpointing = 0, True
        future = asyncio.get_running_loop().run_in_executor(self.threads, self.database.checkpoint)
        future.add_done_callback(self._checkpointed)

    def _checkpointed(self, future: asyncio.Future[None]) -> None:
        """After a checkpoint: concurrent writes prevent it from reaching the end of the log, which then grows."""
        self.checkpointing = False
        if future.exception() is not None:  # it is retried later, without loss
            LOG.warning("%s: checkpoint: %s", self.database.path, future.exception())
        elif self.database.log_bytes() > LOG_LIMIT and not self.failure:
            self.truncate = True
            if self.committing is None:
                self._pause()

    def _pause(self) -> None:
        """Run a checkpoint that no write prevents from reaching the end of the log."""
        self.truncate, self.committing = False, []
        rest = asyncio.get_running_loop().run_in_executor(self.threads, self.database.checkpoint)
        rest.add_done_callback(self._caught_up)

    def _caught_up(self, future: asyncio.Future[None]) -> None:
        """After a complete checkpoint: the next commit starts a new log."""
        if future.exception() is not None:
            LOG.warning("%s: checkpoint: %s", self.database.path, future.exception())
        waiters, self.committing = self.committing or [], None
        _wake(waiters)
        if self.pending:
            self._commit()

    async def close(self) -> None:
        """Commit pending writes and unlock the folder."""
        while (self.pending or self.committing is not None) and not self.failure:
            await self.settled()
        self.threads.shutdown(wait=True)
        self.database.close()

    # --- restore -----------------------------------------------------------------------------------------------------

    def restore(self, store: Store, decode: Decode, first: str) -> None:
        """Fill an empty store from the folder; raises DataError when the folder is damaged.

        decode: decodes an entry from stored bytes. first: the collection to restore before all others: the
        definitions, which decode requires for custom resources.
        """
        collected = gc.isenabled()
        gc.disable()  # nothing can be collected yet, and a traversal is expensive
        try:
            rows: dict[str, list[Row]] = {}
            head = self.database.compacted
            for found in self.database.rows():
                rows.setdefault(found.collection, []).append(found)
                head = max(head, found.revision)
            store.revision = head
            for name in sorted(rows, key=lambda name: name != first):
                self._replay(decode, store.collection(name), rows[name])
            for collection in store.collections.values():
                collection.floor = self.database.compacted
            self.superseded = deque(sorted(self.superseded))
        finally:
            if collected:
                gc.enable()

    def _replay(self, decode: Decode, collection: Collection, rows: list[Row]) -> None:
        """Restore a collection's writes; those that are not compacted are its history again."""
        compacted = self.database.compacted
        entries: dict[str, Entry] = {}
        for found in rows:
            prev = entries.get(found.key)
            try:
                entry = decode(collection, found.revision, found.tail)
            except (ValueError, KeyError, TypeError):
                what = f"{collection.name} {found.key} at revision {found.revision} is not readable"
                raise DataError(self.database.damaged(what)) from None
            event = Event(found.type, entry, prev)
            self._supersede(event)
            if found.type == DELETED:
                entries.pop(found.key, None)
            else:
                entries[found.key] = entry
            if found.revision > compacted:
                collection.remember(event)
        collection.entries = entries
        collection.keys = sorted(entries)
        for entry in list(entries.values()):
            for observer in collection.observers:
                observer(Event(ADDED, entry, None))


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
