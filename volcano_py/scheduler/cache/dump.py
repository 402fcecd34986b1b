"""The picture as a file: everything the scheduler watches, as one Kubernetes List. Volcano: the cache dumper.

The file is what `volcano-py simulate` reads, so that a decision can be looked at again at leisure. Fields
that the scheduler does not read are not in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from volcano_py.kube import Informer


def dump(informers: Iterable[Informer[Any]], folder: Path) -> Path:
    """Write `snapshot-<unix seconds>.json` into `folder`; returns its path. Raises OSError."""
    file = folder / f"snapshot-{int(time.time())}.json"
    encode = msgspec.json.encode
    with file.open("wb") as out:
        out.write(b'{"apiVersion":"v1","kind":"List","items":[')
        first = True
        for informer in informers:
            for obj in informer.store.values():
                out.write(b"\n" if first else b",\n")
                out.write(encode(_named(informer, obj)))
                first = False
        out.write(b"\n]}\n")
    return file


def _named(informer: Informer[Any], obj: Any) -> Any:
    # Objects of a list do not carry their own kind.
    if obj.kind:
        return obj
    return msgspec.structs.replace(obj, api_version=informer.rt.api_version, kind=informer.rt.kind)
