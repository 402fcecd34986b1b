"""Runs the probes of a JobFlow against pods."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import aiohttp
from yarl import URL

from volcano_py.controllers.jobflow.probes import Question

TIMEOUT_SECONDS = 1.0
AT_ONCE = 32


async def ask(questions: Collection[Question]) -> dict[Question, bool]:
    """The result of each probe: success is status 200 to 399 (without redirects), or an accepted connection."""
    if not questions:
        return {}
    answers: dict[Question, bool] = {}
    waiting = iter(questions)

    async def lane(session: aiohttp.ClientSession) -> None:
        for question in waiting:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    answers[question] = await _answered(session, question)
            except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
                answers[question] = False

    async with aiohttp.ClientSession(headers={"User-Agent": "volcano-py-probe"}) as session:
        await asyncio.gather(*(lane(session) for _ in range(min(AT_ONCE, len(questions)))))
    return answers


async def _answered(session: aiohttp.ClientSession, question: Question) -> bool:
    if not question.path:
        _, writer = await asyncio.open_connection(question.address, question.port)
        writer.close()
        return True
    path, _, query = question.path.partition("?")
    url = URL.build(scheme="http", host=question.address, port=question.port, path=path, query_string=query)
    headers = dict([question.header]) if question.header else None
    async with session.get(url, headers=headers, allow_redirects=False, ssl=False) as answer:
        return 200 <= answer.status < 400
