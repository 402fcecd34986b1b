"""Dumps of the cache: all objects that the scheduler watches, as one Kubernetes List. Volcano: the cache dumper.

`volcano-py simulate` reads the file, so that a decision can be reproduced. It does not contain Secrets and fields that
the scheduler does not read. Only the user of the process can read it; its name is random, so that a link with that name
cannot be created in advance.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from volcano_py.kube import Informer


def dump(informers: Iterable[Informer[Any]], folder: Path) -> Path:
    """Write `snapshot-<unix seconds>-<random>.json` into `folder`; returns its path. Raises OSError."""
    file = folder / f"snapshot-{int(time.time())}-{secrets.token_hex(8)}.json"
    encode = msgspec.json.encode
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(b'{"apiVersion":"v1","kind":"List","items":[')
        first = True
        for informer in informers:
            if informer.rt.kind == "Secret":
                continue
            for obj in informer.store.values():
                out.write(b"\n" if first else b",\n")
                out.write(encode(_named(informer, obj)))
                first = False
        out.write(b"\n]}\n")
    return file


def _named(informer: Informer[Any], obj: Any) -> Any:
    # Objects of a list have no kind of their own.
    if obj.kind:
        return obj
    return msgspec.structs.replace(obj, api_version=informer.rt.api_version, kind=informer.rt.kind)
