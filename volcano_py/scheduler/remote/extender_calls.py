"""Sending calls to extenders, and storing their responses in the mailbox. Volcano: plugins/extender/extender.go.

A few calls run concurrently; each has a timeout. A response starts a cycle.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import orjson

from volcano_py.scheduler.plugins.extender.mailbox import ExtenderAnswer, ExtenderRequest, Key, Mailbox
from volcano_py.scheduler.remote.http import CallError, call, decoded

log = logging.getLogger(__name__)

_AT_ONCE = 16
"""Concurrent calls."""
_PAUSE = 1.0
"""Seconds after a failure during which a URL is not called: a server that hangs would delay all other calls."""
_JUST_FAILED = "it has just failed"


class ExtenderCalls:
    """`mailbox` returns the current one; `answered` is called when responses have arrived."""

    def __init__(self, mailbox: Callable[[], Mailbox], answered: Callable[[], None]) -> None:
        self._mailbox = mailbox
        self._answered = answered
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._failed: dict[str, float] = {}
        """URLs whose last call failed, with the time: each failure is one log line."""

    def wake(self) -> None:
        """Called at the end of a cycle, which may have added calls."""
        mail = self._mailbox()
        mail.carried = True
        if mail.outbox or mail.notices:
            self._wake.set()

    async def run(self) -> None:
        """Send calls until cancelled."""
        self._mailbox().carried = True
        async with aiohttp.ClientSession() as session:
            while True:
                await self._wake.wait()
                self._wake.clear()
                mail = self._mailbox()
                requests, mail.outbox = mail.outbox, {}
                notices = list(mail.notices)
                mail.notices.clear()
                await asyncio.gather(*(self._call(session, key, q) for key, q in requests.items()))
                for notice in notices:
                    await self._notify(session, notice)
                if requests:
                    self._answered()

    async def _call(self, session: aiohttp.ClientSession, key: Key, request: ExtenderRequest) -> None:
        async with self._slots:
            try:
                if self._has_just_failed(request.url):
                    raise CallError(_JUST_FAILED)
                answer = ExtenderAnswer(time.time(), await self._post(session, request))
            except CallError as e:
                answer = ExtenderAnswer(time.time(), error=str(e))
            self._report(request.url, answer.error)
            self._mailbox().answers[key] = answer

    def _has_just_failed(self, url: str) -> bool:
        return time.monotonic() - self._failed.get(url, -_PAUSE) < _PAUSE

    async def _notify(self, session: aiohttp.ClientSession, notice: ExtenderRequest) -> None:
        if self._has_just_failed(notice.url):
            return  # each would take the timeout, while calls that decide wait
        try:
            body = await self._post(session, notice)
            text = body.get("errorMessage") if isinstance(body, dict) else None
            self._report(notice.url, str(text) if text else "")
        except CallError as e:
            self._report(notice.url, str(e))

    async def _post(self, session: aiohttp.ClientSession, request: ExtenderRequest) -> Any:
        try:
            data = await asyncio.to_thread(lambda: orjson.dumps(request.body(), option=orjson.OPT_NON_STR_KEYS))
        except (TypeError, ValueError, KeyError, IndexError) as e:
            raise CallError(f"the request cannot be written: {e}") from None
        return decoded(await call(session, "POST", request.url, request.timeout, data=data))

    def _report(self, url: str, error: str) -> None:
        if error:
            if url not in self._failed:
                log.warning("extender %s: %s", url, error)
            if error != _JUST_FAILED:
                self._failed[url] = time.monotonic()
        elif self._failed.pop(url, None) is not None:
            log.info("extender %s responds again", url)
