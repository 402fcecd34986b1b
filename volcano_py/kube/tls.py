"""TLS of a client: the trusted CA, and a client certificate that may be replaced while the program runs.

client-go: transport.TLSConfigFor and its dynamicClientCert. The files of a kubeconfig (itself, CA, certificate,
key) are checked every few seconds, and when the API server responds with 401; a change leads to a new SSL context and
new connections. A certificate that has expired, or is about to, is logged once, with its remedy.
"""

from __future__ import annotations

import base64
import logging
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from volcano_py.kube.errors import KubeError

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Seconds between two checks of the files."""
LOOK_SECONDS_REJECTED = 0.5
"""Seconds between two checks while the API server rejects the credentials."""
SOON = timedelta(hours=24)
SOON_OF_LIFETIME = 0.1
"""A certificate is about to expire within this time, or this part of its lifetime if that is less."""


class Pair(NamedTuple):
    """A client certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Material:
    """The settings of a context. `source` is the certificate in log lines, `remedy` how to replace it."""

    authority: bytes | None = None
    verify: bool = True
    pair: Pair | None = None
    source: str = ""
    remedy: str = ""
    files: tuple[Path, ...] = ()

    def context(self) -> ssl.SSLContext:
        """Raises OSError and ValueError."""
        authority = None if self.authority is None else self.authority.decode()
        context = ssl.create_default_context(cadata=authority)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.pair is not None:
            # OpenSSL's Python binding only reads pairs from files; the folder is private and exists during this call.
            with tempfile.TemporaryDirectory() as folder:
                certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
                certificate.write_bytes(self.pair.certificate)
                key.write_bytes(self.pair.key)
                context.load_cert_chain(certificate, key)
        return context


def material(cluster: Mapping[str, Any], user: Mapping[str, Any], where: str) -> Material:
    """The TLS settings of a cluster and a user of the kubeconfig `where`. Raises OSError and ValueError."""
    files: list[Path] = []

    def read(part: Mapping[str, Any], name: str) -> bytes | None:
        if part.get(f"{name}-data"):
            return base64.b64decode(part[f"{name}-data"])
        if not part.get(name):
            return None
        files.append(Path(part[name]))
        try:
            return files[-1].read_bytes()
        except OSError as error:
            text = f"{error.strerror}; {name} of {where} names this file"
            raise type(error)(error.errno, text, error.filename) from None

    authority = read(cluster, "certificate-authority")
    certificate, key = read(user, "client-certificate"), read(user, "client-key")
    pair = Pair(certificate, key) if certificate and key else None
    if user.get("client-certificate-data"):
        source = f"client-certificate-data of {where}"
        remedy = f"set a new client-certificate-data and client-key-data in {where}"
    else:
        source = f"{user.get('client-certificate')}"
        remedy = (
            f"put a new certificate into {user.get('client-certificate')} and its key into {user.get('client-key')}"
        )
    verify = not cluster.get("insecure-skip-tls-verify")
    return Material(authority, verify, pair, source, f"{remedy}; a restart is not needed", tuple(files))


class Tls:
    """The current TLS context. It is thread-safe."""

    def __init__(
        self,
        load: Callable[[], Material],
        files: Sequence[Path] = (),
        first: Material | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`load` reads the files (not initially if there is `first`); `files` are checked besides the material's own.

        Raises the errors of `load`, and OSError and ValueError for invalid certificates.
        """
        self._load = load
        self._files = tuple(files)
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._given: tuple[Pair, str, str] | None = None
        self._logged: set[str] = set()
        self._material = first or load()
        self._stamps: list[tuple[int, int, int] | None] | None = None
        self._context = self._material.context()
        self._looked = monotonic()
        self._looked_rejected = float("-inf")

    def context(self) -> ssl.SSLContext:
        """A new object after each change of the settings."""
        if self._monotonic() - self._looked >= LOOK_SECONDS:
            self._look()
        return self._context

    def give(self, pair: Pair, source: str, remedy: str) -> None:
        """Present this pair from now on. Raises OSError and ValueError if it is invalid."""
        with self._lock:
            given = (pair, source, remedy)
            self._use(self._with(self._material, given))
            self._given = given

    def rejected(self) -> None:
        """The API server rejects the credentials: check the files now, and log the cause if it is known."""
        now = self._monotonic()
        if now - self._looked_rejected >= LOOK_SECONDS_REJECTED:
            self._looked_rejected = now
            self._look()

    def _look(self) -> None:
        if not self._lock.acquire(blocking=False):
            return  # another thread checks
        try:
            self._looked = self._monotonic()
            self._replace()
            self._report()
        finally:
            self._lock.release()

    def _replace(self) -> None:
        """Create a new context if a file has changed; an invalid one is retried at the next check."""
        stamps = self._stamp()
        if stamps == self._stamps:
            return
        before = self._context
        try:
            self._use(self._with(self._load(), self._given))
        except (OSError, ValueError, KubeError) as error:
            self._once(f"the changed certificates are invalid, the previous ones stay in use: {error}")
            return
        self._stamps = stamps
        if self._context is not before:
            log.info("the certificates of the kubeconfig have changed; new connections use them")

    def _use(self, changed: Material) -> None:
        if changed == self._material:
            return
        self._context = changed.context()
        self._material = changed
        self._logged.clear()

    @staticmethod
    def _with(loaded: Material, given: tuple[Pair, str, str] | None) -> Material:
        if given is None:
            return loaded
        return Material(loaded.authority, loaded.verify, *given, loaded.files)

    def _stamp(self) -> list[tuple[int, int, int] | None]:
        """Modification time, size and inode of each file; None for a file that cannot be read."""
        stamps: list[tuple[int, int, int] | None] = []
        for file in (*self._files, *self._material.files):
            try:
                found = os.stat(file)
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except OSError:
                stamps.append(None)
        return stamps

    def _report(self) -> None:
        """Log that the client certificate has expired, or is about to; once per certificate."""
        text = self.problem() or self._problem(soon=True)
        if text:
            self._once(text)

    def problem(self) -> str:
        """Why the API server rejects the client certificate: it is not valid now. Empty if it is."""
        return self._problem(soon=False)

    def _problem(self, *, soon: bool) -> str:
        if self._material.pair is None:
            return ""
        try:
            begin, end = validity(self._material.pair.certificate)
        except ValueError:
            return ""  # OpenSSL accepts more than the parser
        now = datetime.fromtimestamp(self._clock(), UTC)
        what = f"client certificate {self._material.source}"
        if now > end:
            return f"{what} expired at {_text(end)}, and the API server rejects it: {self._material.remedy}"
        if now < begin:
            return f"{what} is not valid before {_text(begin)}: set the clock of this machine, or wait"
        if soon and end - now < min(SOON, (end - begin) * SOON_OF_LIFETIME):
            return f"{what} expires at {_text(end)}: {self._material.remedy}"
        return ""

    def _once(self, text: str) -> None:
        """Log a message once, until other certificates are used."""
        if text not in self._logged:
            self._logged.add(text)
            log.warning("%s", text)


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """The begin and end of the validity of a certificate (PEM)."""
    from cryptography import x509  # imported here because short programs do not need it

    parsed = x509.load_pem_x509_certificate(certificate)
    return parsed.not_valid_before_utc, parsed.not_valid_after_utc


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
