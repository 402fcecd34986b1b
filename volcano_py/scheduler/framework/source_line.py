"""The line of a plugin that raised. Not in Volcano, where a panic prints the stack and ends the scheduler."""

from __future__ import annotations

from pathlib import PurePath

import volcano_py

_OWN = (str(PurePath(volcano_py.__file__).parent), "volcano_py/")
"""Where the package's files are; compiled modules have the path from which they were compiled."""


def line_of(error: BaseException) -> str:
    """`folder/file.py:12`: the innermost line in the first file of the traceback that is not volcano_py's own; without
    one, the innermost line. Empty for an exception that was not raised."""
    frames: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    if not frames:
        return ""
    file = next((name for name, _ in frames if not name.startswith(_OWN)), frames[-1][0])
    line = next(number for name, number in reversed(frames) if name == file)
    return f"{'/'.join(PurePath(file).parts[-2:])}:{line}"
