"""Dumps of the cache: all objects that the scheduler watches, as one Kubernetes List. Volcano: the cache dumper.

`volcano-py simulate` reads the file, so that a decision can be reproduced. It does not contain Secrets and fields that
the scheduler does not read. Only the user of the process can read it; its name is random, so that a link with that name
cannot be created in advance.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from volcano_py.kube import Informer


def dump(informers: Iterable[Informer[Any]], folder: Path) -> Path:
    """Write `snapshot-<unix seconds>-<random>.json` into `folder`; returns its path. Raises OSError."""
    file = folder / f"snapshot-{int(time.time())}-{secrets.token_hex(8)}.json"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.writelines(parts(informers))
    return file


def parts(informers: Iterable[Informer[Any]]) -> Iterator[bytes]:
    """The List in parts, one for each object. It has the objects that exist now, also if they change meanwhile."""
    found = [(i, obj) for i in informers if i.rt.kind != "Secret" for obj in i.store.values()]
    yield b'{"apiVersion":"v1","kind":"List","items":['
    for number, (informer, obj) in enumerate(found):
        yield (b",\n" if number else b"\n") + msgspec.json.encode(_named(informer, obj))
    yield b"\n]}\n"


def _named(informer: Informer[Any], obj: Any) -> Any:
    # Objects of a list have no kind of their own.
    if obj.kind:
        return obj
    return msgspec.structs.replace(obj, api_version=informer.rt.api_version, kind=informer.rt.kind)
