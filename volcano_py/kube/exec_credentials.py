"""Credentials from a program in a kubeconfig (`users[].user.exec`). client-go: plugin/pkg/client/auth/exec.

The program prints an ExecCredential: a token, a client certificate, or both, and their expiration. It runs on first
use, and again shortly before the expiration, then in a thread, so that no request waits for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from volcano_py.kube.errors import KubeError
from volcano_py.kube.tls import Pair, Tls

EARLY = 60.0
"""Seconds before the expiration in which a credential is replaced."""
TIMEOUT = 60.0
"""Time limit of the program in seconds."""
AGAIN = 10.0
"""Minimum seconds between two replacements of a rejected credential."""
_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecCredentials:
    """The output of a program, cached until it expires. `tls` receives its client certificate."""

    def __init__(
        self,
        plugin: Mapping[str, Any],
        where: str,
        cluster: Mapping[str, Any],
        tls: Tls | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`where` is the kubeconfig in errors. Runs the program; raises KubeError."""
        self._plugin = plugin
        self._where = where
        self._cluster = cluster
        self._tls = tls
        self._clock = clock
        self._headers: dict[str, str] = {}
        self._expires = float("inf")
        self._ran = float("-inf")
        self._renewing = threading.Lock()
        self._renew()

    def headers(self) -> dict[str, str]:
        """The current Authorization header. Raises KubeError if a credential has expired and cannot be replaced."""
        left = self._expires - self._clock()
        if left <= 0:
            self._renew()
        elif left < EARLY:
            self._start_renewal()
        return self._headers

    def rejected(self) -> None:
        """The API server rejected the credential: run the program again, at most every `AGAIN` seconds."""
        if self._tls is not None:
            self._tls.rejected()
        if self._clock() - self._ran >= AGAIN:
            self._start_renewal()

    def _start_renewal(self) -> None:
        if self._renewing.acquire(blocking=False):
            threading.Thread(target=self._renew_early, name="credentials", daemon=True).start()

    def _renew_early(self) -> None:
        try:
            self._renew()
        except KubeError:
            pass  # the old one is still valid; the next request retries
        finally:
            self._renewing.release()

    def _renew(self) -> None:
        self._ran = self._clock()
        status = self._run()
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise KubeError(f"{self._where}: {self._command} returned no credentials; run it manually to see why")
        if certificate and key and self._tls is not None:
            remedy = f"run {self._command} manually to see why it returns no later one"
            try:
                self._tls.give(Pair(certificate.encode(), key.encode()), f"of {self._command}", remedy)
            except (OSError, ValueError) as error:
                raise KubeError(f"{self._where}: {self._command} returned an invalid certificate: {error}") from error
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._expires = _seconds(status.get("expirationTimestamp"))

    @property
    def _command(self) -> str:
        return str(self._plugin.get("command") or "")

    def _run(self) -> dict[str, Any]:
        version = self._plugin.get("apiVersion") or _API_VERSIONS[0]
        if version not in _API_VERSIONS:
            raise KubeError(f"{self._where}: user.exec.apiVersion {version!r} is none of {', '.join(_API_VERSIONS)}")
        program = shutil.which(self._command)
        if program is None:
            hint = self._plugin.get("installHint") or f"install it, or add it to PATH: {self._command}"
            raise KubeError(f"{self._where}: the credential program {self._command!r} was not found; {hint.strip()}")
        info: dict[str, Any] = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        if self._plugin.get("provideClusterInfo"):
            info["spec"]["cluster"] = dict(self._cluster)
        variables = {row["name"]: row["value"] for row in self._plugin.get("env") or ()}
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done = subprocess.run(
                [program, *(self._plugin.get("args") or ())],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KubeError(f"{self._where}: {self._command} cannot be run: {error}") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
            raise KubeError(f"{self._where}: {self._command} exited with code {done.returncode}: {last}")
        return self._status_of(done.stdout)

    def _status_of(self, output: str) -> dict[str, Any]:
        """The credentials in the program's output. Raises KubeError."""
        try:
            status = json.loads(output)["status"]
            assert isinstance(status, dict)
        except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
            raise KubeError(f"{self._where}: {self._command} returned no credentials; run it manually") from None
        for field in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"):
            found = status.get(field)
            printable = found is None or (isinstance(found, str) and found.isascii())
            if not printable or (field == "token" and found and not found.isprintable()):
                raise KubeError(f"{self._where}: {self._command} returned an invalid status.{field}; run it manually")
        try:
            _seconds(status.get("expirationTimestamp"))
        except (ValueError, OverflowError):
            stamp = status["expirationTimestamp"]
            raise KubeError(
                f"{self._where}: {self._command} returned status.expirationTimestamp {stamp!r}, which is not a time"
            ) from None
        return status


def _seconds(stamp: str | None) -> float:
    """An RFC 3339 time as seconds since the epoch; without one a credential does not expire."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() if stamp else float("inf")
