"""The identity of a sandbox across restarts: its authority, its token, its signing key and its port."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import orjson

from volcano_py.kube.certificates import Authority, new_authority
from volcano_py.sandbox.apiserver.storage.database import Database, DataError

FACT = "identity"


@dataclass(slots=True)
class Identity:
    """`token` is the administrator's, `key` signs those of service accounts; port 0: no port was used yet."""

    authority: Authority = field(default_factory=new_authority)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    port: int = 0


def load(database: Database) -> Identity:
    """The identity of a data folder; a new one for a new folder."""
    with database.guarded():
        text = database.fact(FACT)
    if text is None:
        return Identity()
    try:
        raw = orjson.loads(text)
        authority = Authority(raw["certificate"].encode(), raw["authorityKey"].encode())
        return Identity(authority, raw["token"], bytes.fromhex(raw["key"]), raw["port"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(database.damaged(f"the fact {FACT!r} is not readable")) from None


def save(database: Database, identity: Identity) -> None:
    """Store the identity; the caller must have no open transaction."""
    raw = {
        "certificate": identity.authority.certificate.decode(),
        "authorityKey": identity.authority.key.decode(),
        "token": identity.token,
        "key": identity.key.hex(),
        "port": identity.port,
    }
    with database.guarded():
        database.set_fact(FACT, orjson.dumps(raw).decode())
