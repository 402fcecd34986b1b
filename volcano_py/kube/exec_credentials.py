"""Credentials from a program that a kubeconfig names (`users[].user.exec`). client-go: plugin/pkg/client/auth/exec.

The program prints an ExecCredential: a token, a client certificate, or both, and when they expire. It runs when they
are first needed, and again shortly before they expire, then in a thread, so that no request waits for it.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from volcano_py.kube.errors import KubeError

EARLY = 60.0
"""Seconds before the end of a credential in which it is replaced."""
TIMEOUT = 60.0
"""Seconds that the program may take."""
_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecCredentials:
    """What a program gives, kept until it expires. `context` gets its client certificate."""

    def __init__(
        self,
        plugin: Mapping[str, Any],
        where: str,
        cluster: Mapping[str, Any],
        context: ssl.SSLContext | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`where` names the kubeconfig in errors. Runs the program; raises KubeError."""
        self._plugin = plugin
        self._where = where
        self._cluster = cluster
        self._context = context
        self._clock = clock
        self._headers: dict[str, str] = {}
        self._expires = float("inf")
        self._renewing = threading.Lock()
        self._renew()

    def headers(self) -> dict[str, str]:
        """The Authorization header of this moment. Raises KubeError when a credential ended and there is no other."""
        left = self._expires - self._clock()
        if left <= 0:
            self._renew()
        elif left < EARLY and self._renewing.acquire(blocking=False):
            threading.Thread(target=self._renew_early, name="credentials", daemon=True).start()
        return self._headers

    def _renew_early(self) -> None:
        try:
            self._renew()
        except KubeError:
            pass  # the old one is still valid; the next request tries again
        finally:
            self._renewing.release()

    def _renew(self) -> None:
        status = self._run()
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise KubeError(f"{self._where}: {self._command} gave no credentials; run it by hand to see why")
        if certificate and key and self._context is not None:
            load_pair(self._context, certificate.encode(), key.encode())
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
            hint = self._plugin.get("installHint") or f"install it, or put it on PATH: {self._command}"
            raise KubeError(f"{self._where}: the credential program {self._command!r} is not found; {hint.strip()}")
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
            raise KubeError(f"{self._where}: {self._command} ended with code {done.returncode}: {last}")
        try:
            status = json.loads(done.stdout)["status"]
            assert isinstance(status, dict)
        except (ValueError, KeyError, TypeError, AssertionError):
            raise KubeError(f"{self._where}: {self._command} gave no credentials; run it by hand to see why") from None
        return status


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Present a client certificate in connections from now on. Raises OSError for what is none."""
    # OpenSSL's Python binding reads pairs from files only; the directory is private and exists during this call.
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("tls.crt", certificate), ("tls.key", key)):
            (Path(folder) / name).write_bytes(content)
        context.load_cert_chain(str(Path(folder) / "tls.crt"), str(Path(folder) / "tls.key"))


def _seconds(stamp: str | None) -> float:
    """A time of RFC 3339 as seconds since the epoch; without one a credential does not expire."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() if stamp else float("inf")
