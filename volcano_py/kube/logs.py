"""The log format of all components: time, level, component, text. Volcano: klog.

A record is one line, except for the stack of an error: control characters of its text, which may come from an object of
any user, are escaped, so that no object can write lines of the log or reach the terminal of its reader.
"""

from __future__ import annotations

import logging

_ESCAPED = {c: f"\\u{c:04x}" for c in [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029] if c != 0x09}


class _Formatter(logging.Formatter):
    """Escapes the text of a record, and indents a stack: the text of an error may have several lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(_ESCAPED)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join("  " + line.translate(_ESCAPED) for line in lines)


def configure(component: str, level: int | str = logging.INFO) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(f"%(asctime)s %(levelname)s {component}: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    # No format names the line, thread or process of a record: searching the stack for them takes as long as the rest.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
