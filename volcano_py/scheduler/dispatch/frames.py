"""Frames on the pipe: four bytes of length (big endian), then one MessagePack message. Volcano has one process."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_FRAME = 1 << 28
"""Maximum length of a frame in bytes; a longer one means that the stream is corrupt."""

_length = struct.Struct(">I")
_encoder = msgspec.msgpack.Encoder()


class InvalidFrame(Exception):
    """The bytes on the pipe are not a frame."""


def encode(message: msgspec.Struct) -> bytes:
    """Encode one message as a frame."""
    body = _encoder.encode(message)
    return _length.pack(len(body)) + body


class Reader:
    """Splits a stream of bytes into messages of `union`."""

    def __init__(self, union: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(union)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that `data` completes. Raises InvalidFrame."""
        self._buffer += data
        begin, buffer = 0, self._buffer
        try:
            while len(buffer) - begin >= 4:
                (length,) = _length.unpack_from(buffer, begin)
                if length > MAX_FRAME:
                    raise InvalidFrame(f"a frame of {length} bytes")
                end = begin + 4 + length
                if len(buffer) < end:
                    break
                body = bytes(buffer[begin + 4 : end])
                begin = end
                try:
                    yield self._decoder.decode(body)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    raise InvalidFrame(str(error)) from error
        finally:
            del buffer[:begin]
