"""The file of `--config`: a KubeSchedulerConfiguration as it is written for kube-scheduler.

Profiles, back-off and their arguments are read by `profiles.configuration`; `clientConnection` and `leaderElection`
are options of the process here, unless the command line has them. The file is read again when it changes; one that
cannot be used is one error line, and the last valid configuration stays in force.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.configuration.reload import file_version, read_text
from volcano_py.scheduler.framework.config import ConfigurationError, read_yaml
from volcano_py.scheduler.profiles import configuration as profiles
from volcano_py.scheduler.profiles.registry import REGISTRY, Registry
from volcano_py.scheduler.profiles.release import DEFAULT, release_of

log = logging.getLogger(__name__)


class _Client(msgspec.Struct, rename="camel"):
    kubeconfig: str | None = None
    qps: float | None = None
    burst: int | None = None


class _Election(msgspec.Struct, rename="camel"):
    leader_elect: bool | None = None
    lease_duration: str | None = None
    renew_deadline: str | None = None
    retry_period: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None


class _Process(msgspec.Struct, rename="camel"):
    """What the file sets for the process."""

    client_connection: _Client = msgspec.field(default_factory=_Client)
    leader_election: _Election = msgspec.field(default_factory=_Election)


class ProfilesFile:
    """`configuration` is the one in force."""

    def __init__(self, options: Options, registry: Registry = REGISTRY) -> None:
        """Read it for the first time. `registry`: the plugins that profiles can name. Raises ConfigurationError."""
        self.path = options.config
        try:
            self.release = release_of(options.kubernetes_version) if options.kubernetes_version else DEFAULT
        except ValueError as error:
            raise ConfigurationError(f"--kubernetes-version: {error}") from None
        self.features = profiles.features_of(options.feature_gates, self.release)
        self._registry = registry
        self._session = frozenset(options.scheduler_names)
        self._version = file_version(self.path)
        self._problem = ""
        self.document: Mapping[str, Any] = {}
        """The content of the file, as it is in force."""
        self.configuration = self._read()

    @property
    def names(self) -> frozenset[str]:
        """The schedulerNames of the profiles in force."""
        return frozenset(p.name for p in self.configuration.profiles)

    def poll(self) -> bool:
        """Check for a change; whether a new configuration is in force now."""
        version = file_version(self.path)
        if version == self._version:
            return False
        self._version = version
        try:
            new = self._read()
        except ConfigurationError as error:
            if str(error) != self._problem:
                log.error("%s; the profiles in force are kept", error)
            self._problem = str(error)
            return False
        self._problem = ""
        if new == self.configuration:
            return False
        self.configuration = new
        log.info("%s: new profiles are in force: %s", self.path, ", ".join(p.name for p in new.profiles))
        return True

    def _read(self) -> profiles.ProfilesConfiguration:
        document = _document(self.path)
        try:
            found = profiles.load(document, self.features, self._registry, self.release)
        except profiles.ProfilesConfigurationError as error:
            raise ConfigurationError(f"{self.path}: {error}") from None
        _check_names([p.name for p in found.profiles], self._session, self.path)
        for warning in found.warnings:
            log.warning("%s: %s", self.path, warning)
        self.document = document
        return found


def with_file(options: Options) -> Options:
    """The options with what the file of `--config` sets for the process; the command line has precedence.

    Raises ConfigurationError.
    """
    if not options.config:
        return options
    try:
        found = msgspec.convert(_document(options.config), _Process)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{options.config}: {error}") from None
    client, election = found.client_connection, found.leader_election
    from_file: dict[str, Any] = {
        "kubeconfig": client.kubeconfig or None,
        "kube_api_qps": client.qps or None,
        "kube_api_burst": client.burst or None,
        "leader_elect": election.leader_elect,
        "lease_name": election.resource_name or None,
        "lease_namespace": election.resource_namespace or None,
    }
    for name in ("lease_duration", "renew_deadline", "retry_period"):
        from_file[name] = _seconds(getattr(election, name), name, options.config)
    new = replace(options, **{k: v for k, v in from_file.items() if v is not None and k not in options.given})
    if new.leader_elect and not new.lease_duration > new.renew_deadline > 1.2 * new.retry_period:
        text = "leaderElection needs leaseDuration > renewDeadline > 1.2 x retryPeriod"
        raise ConfigurationError(f"{options.config}: {text}")
    return new


def _document(path: str) -> Mapping[str, Any]:
    text = read_text(path, "--config")
    try:
        document = read_yaml(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: the document must be a KubeSchedulerConfiguration")
    return document


def _seconds(text: str | None, name: str, path: str) -> float | None:
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigurationError(f"{path}: leaderElection, {name}: {error}") from None


def _check_names(names: Collection[str], session: Collection[str], path: str) -> None:
    for name in names:
        if name in session:
            text = f"profile {name}: the session schedules pods of this schedulerName; change --scheduler-name or it"
            raise ConfigurationError(f"{path}: {text}")
