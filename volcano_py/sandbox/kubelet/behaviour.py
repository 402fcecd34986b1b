"""The behaviour of a container: how long it runs, how it ends, what it prints; from annotations or a simple command.

`sandbox.volcano.sh/run-seconds` and `sandbox.volcano.sh/exit-code` on the pod decide for its containers. Without
them, a command of sleep, exit, true, false, echo (also with `sh -c`, joined by `;`, `&&`, `||` or lines) is
simulated; any other command runs until the pod is deleted.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Object = dict[str, Any]

RUN_SECONDS = "sandbox.volcano.sh/run-seconds"
EXIT_CODE = "sandbox.volcano.sh/exit-code"

_SHELLS = {"sh", "bash", "ash", "dash"}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container: seconds is None if it does not end by itself; output is what it prints, and when.

    reason and message are those of its terminated state (Completed or Error, and no message, when empty).
    """

    seconds: float | None
    exit_code: int = 0
    output: tuple[tuple[float, str], ...] = ()
    reason: str = ""
    message: str = ""


FOREVER = Run(None)


def run_of(pod: Object, container: Object, init: bool = False) -> Run:
    """The behaviour of a container of a pod."""
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    plain = plain_run(tuple(command))
    if init:
        # init containers must end; one with an unknown command succeeds immediately
        return plain if plain is not None and plain.seconds is not None else Run(0.0)
    annotations = pod["metadata"].get("annotations") or {}
    seconds, code = _number(annotations.get(RUN_SECONDS)), _number(annotations.get(EXIT_CODE))
    output = plain.output if plain is not None else ()
    if seconds is not None or code is not None:
        return Run(seconds if seconds is not None else 0.0, int(code or 0), output)
    return plain if plain is not None else FOREVER


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value >= 0 else None


@lru_cache(maxsize=4096)
def plain_run(command: tuple[str, ...]) -> Run | None:
    """The run of a command of simple words; None for other commands."""
    if not command:
        return None
    name = command[0].rsplit("/", 1)[-1]
    if name in _SHELLS:
        script = _script(command[1:])
        return _script_run(script) if script is not None else None
    if name == "exit" or len(command) == 1:
        return _script_run(" ".join(command))
    return _script_run(shlex.join(command))


def _script(words: tuple[str, ...]) -> str | None:
    for index, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return words[index + 1] if index + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None


def _script_run(script: str) -> Run | None:
    total, code = 0.0, 0
    output: list[tuple[float, str]] = []
    connector = ";"
    for part in re.split(r"(\|\||&&|;|\n)", script):
        part = part.strip()
        if part in ("||", "&&", ";", ""):
            if part or connector == ";":
                connector = part or connector
            continue
        if (connector == "&&" and code != 0) or (connector == "||" and code == 0):
            continue
        connector = ";"
        try:
            words = shlex.split(part)
        except ValueError:
            return None
        if not words:
            continue
        name, rest = words[0].rsplit("/", 1)[-1], words[1:]
        if name == "sleep":
            seconds = _sleep(rest)
            if seconds is None:
                return Run(None, 0, tuple(output)) if rest and rest[0] in ("infinity", "inf") else None
            total, code = total + seconds, 0
        elif name == "exit":
            if rest and not rest[0].isdigit():
                return None
            return Run(total, int(rest[0]) % 256 if rest else code, tuple(output))
        elif name in ("true", ":"):
            code = 0
        elif name == "false":
            code = 1
        elif name == "echo":
            output.append((total, " ".join(word for word in rest if word not in ("-n", "-e"))))
            code = 0
        elif name in ("set", "date", "hostname", "exec") and name != "exec":
            code = 0
        else:
            return None
    return Run(total, code, tuple(output))


def _sleep(words: list[str]) -> float | None:
    total = 0.0
    for word in words:
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)", word)
        if match is None:
            return None
        total += float(match.group(1)) * _UNITS[match.group(2)]
    return total if words else None
