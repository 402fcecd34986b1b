"""What would unblock a job: `vcctl explain` in a process of its own.

It reads the whole cluster and runs cycles over it, seconds of work that must not hold up the pages. The process ends
with the answer, and its memory with it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from volcano_py.cli.explain_answer import Answer

LIMIT = 120.0
"""Seconds after which an explanation is given up."""


class ExplainError(Exception):
    """There is no explanation; the text is one sentence."""


class Explainer:
    """Runs `vcctl explain`, one at a time. `options`: of the command, such as --kubeconfig."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = tuple(options)
        self._one = asyncio.Lock()

    async def explain(self, kind: str, name: str, namespace: str) -> Answer:
        """The answer about a job or podgroup. Raises ExplainError."""
        arguments = ["explain", kind, "-n", namespace, "-o", "json", *self._options, "--", name]
        async with self._one:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "volcano_py.cli.vcctl",
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(LIMIT):
                    out, err = await process.communicate()
            except TimeoutError:
                raise ExplainError(
                    f"There is no answer after {LIMIT:.0f} s; try `vcctl explain {kind} {name}`."
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode:
            raise ExplainError(_last_line(err) or _last_line(out) or f"It ended with status {process.returncode}.")
        try:
            return msgspec.json.decode(out, type=Answer)
        except msgspec.DecodeError as error:
            raise ExplainError(f"The answer of `vcctl explain` cannot be read: {error}") from None


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
