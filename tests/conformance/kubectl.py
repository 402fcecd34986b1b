"""Replay recorded commands of the real kubectl against the sandbox, and compare what it prints.

`python -m tests.conformance.kubectl --data FOLDER [--topic NAME] [-v]`: FOLDER holds `kubectl/*.json`. The topics build
on each other, so all up to the one asked for run, in order, on one sandbox. Exit codes must be equal, stdout cell by
cell, stderr in its important words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests import kubectl
from tests.conformance.apiserver import bare_sandbox
from tests.conformance.outcome import DEVIATION, FAIL, PASS, UNBUILDABLE, Outcome
from tests.sandbox.matching import Context, match, words_agree
from volcano_py.sandbox.apiserver.registry.request import User

AREA = "kubectl"
TOPICS = (
    "setup",
    "get-pods",
    "get-others",
    "describe",
    "explain",
    "discovery",
    "write",
    "create",
    "drain-delete",
)
"""In the order in which they were recorded."""
ADMIN = User("admin", ("system:masters", "system:authenticated"))
SECONDS = 60.0


class Printed(NamedTuple):
    """What a command came to."""

    exit: int
    stdout: str
    stderr: str


# ---- the run


async def replay(folder: Path, topics: tuple[str, ...] = TOPICS, verbose: bool = False) -> list[Outcome]:
    """Run the topics; one Outcome for each command."""
    program = kubectl.newest()
    if program is None:
        why = f"no kubectl {kubectl.NEWEST}: run python -m tests.kubectl"
        return [Outcome(AREA, topic, UNBUILDABLE, why) for topic in topics]
    outcomes: list[Outcome] = []
    context = Context()
    with tempfile.TemporaryDirectory() as home:
        async with bare_sandbox(ADMIN) as sandbox:
            environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "KUBECONFIG": sandbox.kubeconfig}
            for topic in topics:
                for index, case in enumerate(json.loads((folder / "kubectl" / f"{topic}.json").read_bytes())):
                    printed = await _run(program, case, environment)
                    outcome = judged(f"{topic}#{index}", case, printed, context)
                    outcomes.append(outcome)
                    if verbose and outcome.kind != PASS:
                        print(f"{outcome.kind} {outcome.name}: kubectl {' '.join(case['args'])}\n      {outcome.why}")
    return outcomes


async def _run(program: str, case: dict[str, Any], environment: dict[str, str]) -> Printed:
    process = await asyncio.create_subprocess_exec(
        program,
        *case["args"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(case.get("stdin", "").encode()), SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Printed(-1, "", f"did not end within {SECONDS:.0f} seconds")
    return Printed(process.returncode or 0, out.decode(), err.decode())


# ---- the comparison


def judged(name: str, case: dict[str, Any], printed: Printed, context: Context) -> Outcome:
    """Equal, different, or different as one of our deviations says."""
    problems = compare(case, printed, context)
    if not problems:
        return Outcome(AREA, name, PASS)
    for deviation in DEVIATIONS:
        without = deviation.without
        rest = printed._replace(stdout=without(printed.stdout))
        if deviation.applies(case["args"]) and not compare({**case, "stdout": without(case["stdout"])}, rest, context):
            return Outcome(AREA, name, DEVIATION, deviation.why)
    return Outcome(AREA, name, FAIL, "; ".join(problems))


def compare(case: dict[str, Any], printed: Printed, context: Context) -> list[str]:
    """The differences; none when the command came out as recorded."""
    out = []
    if printed.exit != case["exit"]:
        out.append(f"exit code {printed.exit} instead of {case['exit']}: {printed.stderr[:300]}")
    out += match(cells(case["stdout"]), cells(printed.stdout), context, "stdout")
    if not words_agree(case["stderr"], printed.stderr) or bool(case["stderr"].strip()) != bool(printed.stderr.strip()):
        out.append(f"stderr: expected {case['stderr']!r}, got {printed.stderr!r}")
    return out


def cells(text: str) -> list[str]:
    """Lines in which every run of blanks is one: columns have no fixed width."""
    return [" ".join(line.split()) for line in text.strip().split("\n")]


# ---- deviations


class Deviation(NamedTuple):
    """A difference that is meant: `without` takes it out of the recorded and of our output; the rest must agree."""

    why: str
    applies: Callable[[list[str]], bool]
    without: Callable[[str], str]


def _descriptions(text: str) -> str:
    """`explain` without prose: the fields with their types and enumerations stay."""
    shape = re.compile(r"[A-Z]+: |\s*\w+\t<|\s*enum: ")
    return "\n".join(line for line in text.split("\n") if shape.match(line))


def _credential(text: str) -> str:
    return re.sub(r"\nExtra: authentication.kubernetes.io/credential-id.*", "", text)


def _without_conditions(text: str) -> str:
    return "\n".join(line for line in _descriptions(text).split("\n") if "conditions\t" not in line)


def _two_columns(text: str) -> str:
    """The name and the parent of queues."""
    lines = text.split("\n")
    end = lines[0].find("STATE")
    return "\n".join((line if end < 0 else line[:end]).rstrip() for line in lines)


def _without_reservations(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if "reservation.volcano.sh" not in line)


DEVIATIONS = (
    Deviation("the kind Reservation is ours", lambda args: args[0] == "api-versions", _without_reservations),
    Deviation(
        "queue-counters: queues have columns for state, weight and PodGroups",
        lambda args: "get" in args and ("queue" in args or "q" in args),
        _two_columns,
    ),
    Deviation(
        "our definition of Queue has conditions, for clusters without webhooks",
        lambda args: args == ["explain", "queue.status"],
        _without_conditions,
    ),
    Deviation(
        "the definitions of Volcano's kinds describe their fields in our own words",
        lambda args: args[0] == "explain" and args[1].split(".")[0] in ("vcjob", "queue", "podgroup"),
        _descriptions,
    ),
    Deviation(
        "our administrator shows a token, not a certificate whose fingerprint could be told",
        lambda args: args == ["auth", "whoami"],
        _credential,
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Print how many commands come out as recorded."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds kubectl/*.json")
    parser.add_argument("--topic", choices=TOPICS, default=TOPICS[-1], help="stop after this one")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every difference")
    options = parser.parse_args(arguments)
    topics = TOPICS[: TOPICS.index(options.topic) + 1]
    outcomes = asyncio.run(replay(options.data, topics, options.verbose))
    for kind in (PASS, DEVIATION, FAIL, UNBUILDABLE):
        print(f"{kind}: {sum(outcome.kind == kind for outcome in outcomes)}")
    return 0 if all(outcome.kind in (PASS, DEVIATION) for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
