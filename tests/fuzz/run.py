"""Runs targets on input, and keeps what fails and what is slowest."""

from __future__ import annotations

import random
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Target

CORPUS = Path(__file__).parent / "corpus"
LIMIT = 2.0
"""Seconds of CPU time that one input may take."""
_BATCH = 200


@dataclass
class Finding:
    """An input that broke a promise."""

    target: str
    data: bytes
    why: str
    trace: str = ""

    @property
    def place(self) -> str:
        """The type of the error and the last line of the code in which it was raised: equal for one fault."""
        return f"{self.target.split()[0]}: {self.why.split(':')[0]}: {self.trace.strip().splitlines()[-2:-1]}"


@dataclass
class Summary:
    """What a target did. `slowest`: CPU seconds of one input, and its size."""

    inputs: int = 0
    accepted: int = 0
    slowest: float = 0.0
    slowest_input: bytes = b""
    findings: list[Finding] = field(default_factory=list)


def one(target: Target, data: bytes) -> tuple[bool, float, Finding | None]:
    """Run a target on one input: whether it was valid, its CPU seconds, and what it broke."""
    begun = time.thread_time()
    accepted, finding = True, None
    try:
        target.run(data)
    except target.errors:
        accepted = False
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        last = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)[-4:]))
        finding = Finding(target.name, data, why[:300], last)
    took = time.thread_time() - begun
    if finding is None and took > LIMIT:
        finding = Finding(target.name, data, f"slow: {took:.1f} s for {len(data)} bytes")
    return accepted, took, finding


def note(summary: Summary, data: bytes, outcome: tuple[bool, float, Finding | None]) -> None:
    """Add the outcome of one input; of equal findings the shortest input is kept."""
    accepted, took, finding = outcome
    summary.inputs += 1
    summary.accepted += accepted
    if took > summary.slowest:
        summary.slowest, summary.slowest_input = took, data
    if finding is None:
        return
    for index, known in enumerate(summary.findings):
        if known.place == finding.place:
            if len(finding.data) < len(known.data):
                summary.findings[index] = finding
            return
    summary.findings.append(finding)


def fuzz(target: Target, seed: int, seconds: float, summary: Summary, most: int | None = None) -> None:
    """Run a target on drawn input for so long, or on `most` inputs."""
    mutator = Mutator(target.seeds, target.form, random.Random(f"{seed} {target.name}"))
    for data in target.seeds if not summary.inputs else ():
        note(summary, data, one(target, data))
    end = time.monotonic() + seconds
    left = most if most is not None else -1
    while left and time.monotonic() < end:
        for _ in range(_BATCH if left < 0 else min(left, _BATCH)):
            data = mutator.draw()
            note(summary, data, one(target, data))
            left -= left > 0


def corpus() -> list[tuple[str, Path]]:
    """The kept inputs: name of the target, and file. A folder has the target's name, with _ for / and space."""
    return [(path.parent.name, path) for path in sorted(CORPUS.glob("*/*"))]


def folder_name(target: str) -> str:
    """The corpus folder of a target."""
    return target.strip().replace("/", "_").replace(" ", "_")
