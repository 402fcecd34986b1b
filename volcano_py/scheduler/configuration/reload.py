"""The configuration: read at the start and again when it changes. Volcano: loadSchedulerConf and its watcher.

It comes from a file (`ConfigurationFile`) or from a ConfigMap (`configmap.ConfigurationMap`); what both do with a new
document is in `ConfigurationSource`. A document that cannot be used is one error line; the last valid one stays in
force, also after a restart (`last_valid`). Without one, a start waits for a valid document. A change of a file is
detected by its inode, size and time once a second, which works with the symlinks of a mounted ConfigMap.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Coroutine
from pathlib import Path
from typing import Any

from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError
from volcano_py.scheduler.configuration.last_valid import LastValid, document
from volcano_py.scheduler.framework.config import DEFAULT_TEXT, Configuration, ConfigurationError, load, unknown_plugins
from volcano_py.scheduler.model.plan import Operation

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two checks."""


class ConfigurationSource:
    """`configuration` is the one in force. `where` names the source in messages, empty for the built-in document."""

    configuration: Configuration
    _client: Client

    def __init__(
        self,
        where: str,
        actions: Collection[str],
        plugins: Collection[str],
        *,
        strict: bool,
        default: bool,
        kept: LastValid | None = None,
    ) -> None:
        self.where = where
        self.waiting = ""
        """Why no configuration is in force; empty when there is one."""
        self.fallback = ""
        """Which other configuration is in force since the start, as the document was invalid then."""
        self.kept = kept
        """Where the last valid document is kept; None: an invalid one at the start is an error."""
        self._actions = actions
        self._plugins = plugins
        self._strict = strict
        self._default = default
        self._problem = ""

    async def start(self, client: Client) -> None:
        """Put the first configuration in force, if the constructor has not.

        Returns when one is in force: with an invalid document that is the one that was kept, or the next valid one.
        Raises KubeError, and ConfigurationError without a place where the last valid document is kept.
        """
        self._client = client
        if hasattr(self, "configuration"):
            return
        try:
            self._first()
            return
        except ConfigurationError as error:
            if self.kept is None:
                await self._report(client, f"{error}; the scheduler cannot start")
                raise
            problem = str(error)
        found = await self.kept.read(client)
        if found is not None:
            try:
                self.configuration = self._load(document(found))
            except ConfigurationError as error:
                log.warning("%s is not valid for this version and is not used: %s", self.kept, error)
            else:
                self.fallback = f"the last valid configuration is in force, from {self.kept}"
                self._keep(problem, self.fallback)
                return
        await self._wait_for_a_valid_one(client, problem)

    async def _wait_for_a_valid_one(self, client: Client, problem: str) -> None:
        reported = ""
        while True:
            self.waiting = (
                f"{problem}; nothing is scheduled until it is valid; correct it, or use --strict-config=false"
            )
            if self.waiting != reported:
                reported = self.waiting
                log.error("%s", self.waiting)
                await self._report(client, self.waiting)
            await asyncio.sleep(INTERVAL)
            try:
                await self._look_again(client)
                self.configuration = self._read()
            except ConfigurationError as error:
                problem = str(error)
            except KubeError as error:
                log.warning("%s cannot be read, retrying: %s", self.where, error)
            else:
                self.waiting = ""
                text = f"a new configuration is in force: actions {', '.join(self.configuration.actions)}"
                log.info("%s: %s", self.where, text)
                self.in_force(text)
                return

    async def _look_again(self, client: Client) -> None:
        """Read the document again while no task follows it. Raises KubeError."""

    async def _report(self, client: Client, text: str) -> None:
        """Report an error at the start, when there is no dispatcher yet."""

    @property
    def problem(self) -> str:
        """Why the document as it is now is not in force; empty if it is."""
        return self.waiting or self._problem

    def parts(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Tasks that must run beside the scheduler, by name."""
        return {} if self.kept is None else {"last valid configuration": self.kept.run(self._client)}

    def poll(self) -> bool:
        """Check for a change; whether a new configuration is in force now."""
        raise NotImplementedError

    def operations(self) -> list[Operation]:
        """The Events about the configuration that have not been written yet."""
        return []

    def warn(self, text: str) -> None:
        """Report a warning about the configuration in force, if the source has a place beside the log."""

    def failed(self, text: str) -> None:
        """Report a document that cannot be used."""

    def in_force(self, text: str) -> None:
        """Report a new configuration."""

    def _text(self) -> str:
        """The document as it is now. Raises ConfigurationError when there is none."""
        raise NotImplementedError

    def _first(self) -> None:
        """Put the first configuration in force.

        Raises ConfigurationError when the document is invalid or missing and the source is strict, or when the
        built-in configuration is off.
        """
        try:
            self.configuration = self._read()
        except ConfigurationError as error:
            if self._strict or not self._default:
                raise
            self._keep(str(error), "the built-in configuration is in force")
            self.configuration = self._load(DEFAULT_TEXT)

    def _next(self) -> bool:
        """Put a changed document in force, if it is valid and differs."""
        try:
            new = self._read()
        except ConfigurationError as error:
            self._keep(str(error), "the configuration in force is kept")
            return False
        repaired, self._problem, self.fallback = bool(self._problem), "", ""
        if new == self.configuration and not repaired:
            return False
        changed, self.configuration = new != self.configuration, new
        text = f"a new configuration is in force: actions {', '.join(new.actions)}"
        log.info("%s: %s", self.where, text)
        self.in_force(text)
        return changed

    def _keep(self, problem: str, what: str) -> None:
        if problem != self._problem:
            log.error("%s; %s", problem, what)
            self.failed(f"{problem.removeprefix(f'{self.where}: ')}; {what}")
        self._problem = problem

    def _read(self) -> Configuration:
        text = self._text()
        try:
            configuration = self._load(text)
            if self.kept is not None:
                self.kept.put(text)
            return configuration
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.where}: {error}") from None
        except RecursionError:
            raise ConfigurationError(f"{self.where}: it is nested too deep; use fewer levels") from None

    def _load(self, text: str) -> Configuration:
        configuration = load(text, self._actions)
        for warning in (*configuration.warnings, *unknown_plugins(configuration, self._plugins)):
            log.warning("%s: %s", self.where or "configuration", warning)
            self.warn(warning)
        return configuration


class ConfigurationFile(ConfigurationSource):
    """The configuration of a file; without a path the built-in one."""

    def __init__(
        self,
        path: str,
        actions: Collection[str],
        plugins: Collection[str],
        *,
        strict: bool = True,
        default: bool = True,
        kept: LastValid | None = None,
    ) -> None:
        """Read it for the first time.

        Raises ConfigurationError when the file is invalid or missing and `strict` is set, or when
        `default` (the built-in configuration) is off. With `kept`, `start` reads it, and waits instead.
        """
        super().__init__(path, actions, plugins, strict=strict, default=default, kept=kept if path else None)
        self._version: tuple[int, ...] | None = None
        if not path:
            if not default:
                raise ConfigurationError(
                    "neither --scheduler-conf nor --scheduler-configmap is set, "
                    "and --disable-default-scheduler-config forbids the built-in configuration"
                )
            self.configuration = self._load(DEFAULT_TEXT)
            return
        self._version = file_version(path)
        if kept is None:
            self._first()

    def poll(self) -> bool:
        if not self.where:
            return False
        version = file_version(self.where)
        if version == self._version:
            return False
        self._version = version
        return self._next()

    def _text(self) -> str:
        return read_text(self.where, "--scheduler-conf")


def read_text(path: str, flag: str) -> str:
    """The text of a configuration file. `flag` names it in messages. Raises ConfigurationError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}; check {flag}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}; save it as UTF-8") from None


def file_version(path: str) -> tuple[int, ...] | None:
    """What changes when the file changes; None without the file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
