"""The format of CPU profiles: profile.proto of pprof, which `go tool pprof`, Parca, Pyroscope and speedscope read.

Only the fields that a CPU profile of functions and lines needs are written. A message is a sequence of fields: a key
(number and wire type), then a varint, or a length and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

_VARINT, _BYTES = 0, 2


class Frame(NamedTuple):
    """One call on a stack."""

    function: str
    file: str
    first_line: int
    """The line of the function's definition."""
    line: int


def encode(stacks: Mapping[tuple[Frame, ...], int], period: int, begun: int, duration: int) -> bytes:
    """The profile as a message. `stacks`: the number of samples by stack, the innermost call first. `period`:
    nanoseconds of CPU time per sample; `begun`: nanoseconds since 1970; `duration`: nanoseconds."""
    texts: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str, int], int] = {}
    locations: dict[Frame, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    out = bytearray()
    samples, cpu = text("samples"), text("cpu")
    count, nanoseconds = text("count"), text("nanoseconds")
    out += _message(1, _number(1, samples) + _number(2, count))
    out += _message(1, _number(1, cpu) + _number(2, nanoseconds))
    for stack, number in stacks.items():
        ids = [locations.setdefault(frame, len(locations) + 1) for frame in stack]
        out += _message(2, _packed(1, ids) + _packed(2, (number, number * period)))
    for frame, location in locations.items():
        key = frame.function, frame.file, frame.first_line
        function = functions.setdefault(key, len(functions) + 1)
        out += _message(4, _number(1, location) + _message(4, _number(1, function) + _number(2, frame.line)))
    for (name, file, line), function in functions.items():
        fields = _number(1, function) + _number(2, text(name)) + _number(3, text(name))
        out += _message(5, fields + _number(4, text(file)) + _number(5, line))
    for value in texts:
        out += _message(6, value.encode())
    out += _number(9, begun) + _number(10, duration)
    out += _message(11, _number(1, cpu) + _number(2, nanoseconds)) + _number(12, period)
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(body)) + body


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
