"""Sets a token without expiry in Secrets of type service-account-token. Kubernetes: the tokens controller."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.auth.authentication import Authenticator, InvalidToken, service_account_claims
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Entry, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

SECRETS = "secrets"
TYPE = "kubernetes.io/service-account-token"
ACCOUNT, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
NEVER = 253_402_300_799  # the last second of the year 9999


def controller(api: Api, authority: bytes) -> Controller:
    client = Client(api, "tokens-controller")
    secrets = api.resource("", SECRETS).collection
    accounts = api.resource("", "serviceaccounts").collection

    def secret_changed(event: Event) -> Iterable[str]:
        if event.type != DELETED and event.entry.fields["type"] == TYPE:
            yield event.entry.key

    def account_changed(event: Event) -> Iterable[str]:
        """Sync the Secrets of an account that was created or deleted."""
        if event.type == DELETED or event.prev is None:
            rows = secrets.select(event.entry.namespace)
            yield from (row.key for row in rows if row.fields["type"] == TYPE)

    async def sync(key: Any) -> None:
        entry = secrets.entries.get(key)
        if entry is None:
            return
        secret = entry.load()
        annotations = secret["metadata"].get("annotations") or {}
        account = accounts.get(entry.namespace, annotations.get(ACCOUNT, ""))
        known = annotations.get(ACCOUNT_UID)
        if account is None or known not in (None, account.uid):
            if known is not None or (account is None and (secret.get("data") or {}).get("token")):
                await client.delete(SECRETS, entry)
            return
        if known is not None and valid((secret.get("data") or {}).get("token") or ""):
            return
        made = token(account, entry)
        data = {"ca.crt": authority, "namespace": entry.namespace.encode(), "token": made}
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}

        def fill(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {})[ACCOUNT_UID] = account.uid
            obj["data"] = {**(obj.get("data") or {}), **encoded}

        await client.update(SECRETS, key, fill, uid=entry.uid)

    def valid(encoded: str) -> bool:
        """Whether a Secret's token is valid."""
        try:
            authenticator().authenticate(base64.b64decode(encoded).decode())
        except (ValueError, InvalidToken):
            return False
        return True

    def token(account: Entry, secret: Entry) -> bytes:
        bound = {"name": secret.name, "uid": secret.uid}
        claims = service_account_claims(account.namespace, account.name, account.uid, NEVER, secret=bound)
        return authenticator().issue(claims).encode()

    def authenticator() -> Authenticator:
        found: Authenticator = api.extensions["authenticator"]
        return found

    return Controller("tokens-controller", sync, wakes={SECRETS: secret_changed, "serviceaccounts": account_changed})
