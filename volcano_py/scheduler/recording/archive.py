"""Archives: the one compressed file that a snapshot, or a recording of cycles, is.

An archive is gzip over lines of JSON: a header with the format, its version and the version of volcano_py; the content;
and a last line with the number of lines, so that a file that was cut off is recognized. Only its owner may read it.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from volcano_py import __version__
from volcano_py.kube.errors import UNDECODABLE

MAX_BYTES = 256 * 2**20
"""Limit of an archive's content, decompressed: about 200,000 pods."""
MAX_LINES = 4_000_000
"""Limit of its lines: far more than content of this size has, and little memory."""
_LEVEL = 4
_CHUNK = 2**20
_MB = 1e6
_MAGIC = b"\x1f\x8b"
"""How gzip begins."""
_LIMIT = f"{MAX_BYTES / _MB:.0f} MB"


class ArchiveError(ValueError):
    """A file that cannot be used; the message gives the reason and the remedy, in one sentence."""


class Header(msgspec.Struct):
    """The first line. `program` is the version of volcano_py that wrote the file."""

    format: str
    version: int
    program: str = __version__


class _End(msgspec.Struct):
    lines: int


_header = msgspec.json.Decoder(Header)
_end = msgspec.json.Decoder(_End)


def pack(header: Header, lines: Iterable[bytes]) -> bytes:
    """The bytes of an archive. Raises ArchiveError if they would be more than can be read."""
    content = [msgspec.json.encode(header), *lines]
    content.append(msgspec.json.encode(_End(len(content))))
    whole = b"\n".join(content)
    if len(whole) > MAX_BYTES:
        raise ArchiveError(f"the {header.format} would have {len(whole) / _MB:.0f} MB, above the limit of {_LIMIT}")
    return gzip.compress(whole, _LEVEL, mtime=0)


def write(path: Path, packed: bytes) -> None:
    """Put a file in the place of `path` at once, with mode 0600. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(packed)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read(path: Path, format: str, version: int, made_by: str, *, growing: bool = False) -> tuple[Header, list[bytes]]:
    """Header and content of an archive of this format, at most of this version. `made_by` is the command that makes
    one. `growing`: it has no last line, and what is written of it so far counts. Raises ArchiveError, OSError."""
    content = _decompressed(path, format, made_by, growing)
    if content.count(b"\n") > MAX_LINES:
        raise _damaged(path, made_by)
    lines = content.split(b"\n")
    try:
        header = _header.decode(lines[0])
    except UNDECODABLE:
        raise ArchiveError(f"{path} is not a {format}; make one with `{made_by}`") from None
    if header.format != format:
        raise ArchiveError(f"{path} is a {header.format}, and not a {format}; make one with `{made_by}`")
    if header.version > version:
        raise ArchiveError(
            f"{path} was written by volcano-py {header.program} in format version {header.version}, and volcano-py "
            f"{__version__} reads up to version {version}; upgrade volcano-py"
        )
    if growing:
        return header, lines[1:-1]
    try:
        whole = _end.decode(lines[-1]).lines == len(lines) - 1
    except UNDECODABLE:
        whole = False
    if not whole:
        raise _truncated(path, made_by)
    return header, lines[1:-1]


def _decompressed(path: Path, format: str, made_by: str, growing: bool) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ArchiveError(f"{path} is not a {format}; make one with `{made_by}`")
        file.seek(0)
        while not stream.eof and (chunk := file.read(_CHUNK)):
            while chunk and not stream.eof:
                try:
                    part = stream.decompress(chunk, MAX_BYTES + 1 - size)
                except zlib.error:
                    raise _damaged(path, made_by) from None
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise ArchiveError(f"{path} is too large: a {format} has at most {_LIMIT} when decompressed")
                chunk = stream.unconsumed_tail
    if not stream.eof and not growing:
        raise _truncated(path, made_by)
    return b"".join(parts)


def _truncated(path: Path, made_by: str) -> ArchiveError:
    return ArchiveError(f"{path} is truncated; copy it again, or recreate it with `{made_by}`")


def _damaged(path: Path, made_by: str) -> ArchiveError:
    return ArchiveError(f"{path} is damaged; copy it again, or recreate it with `{made_by}`")
