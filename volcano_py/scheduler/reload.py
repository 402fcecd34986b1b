"""The configuration file: read at the start and again when it changes. Volcano: loadSchedulerConf and its
watcher.

A change is seen by looking at the file behind the path once a second (inode, size, time), which works with
the symlinks of a mounted ConfigMap. A document that cannot be used is one error line; the last good one stays
in force.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from volcano_py.scheduler.framework.config import DEFAULT_TEXT, Configuration, ConfigurationError, load

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks."""


class ConfigurationFile:
    """`configuration` is the one in force."""

    def __init__(
        self,
        path: str,
        actions: Collection[str],
        plugins: Collection[str],
        *,
        strict: bool = True,
        default: bool = True,
    ) -> None:
        """Read it for the first time.

        Raises ConfigurationError when the file is bad or missing and `strict` is set, or when there is
        nothing to fall back to because `default` (the built-in configuration) is off.
        """
        self.path = path
        self._actions = actions
        self._plugins = plugins
        self._seen: tuple[int, ...] | None = None
        self._problem = ""
        if not path:
            if not default:
                raise ConfigurationError(
                    "no --scheduler-conf is given and --disable-default-scheduler-config forbids the built-in one"
                )
            self.configuration = self._load(DEFAULT_TEXT)
            return
        self._seen = self._look()
        try:
            self.configuration = self._read()
        except ConfigurationError as error:
            if strict or not default:
                raise
            log.error("%s; the built-in configuration is in force", error)
            self._problem = str(error)
            self.configuration = self._load(DEFAULT_TEXT)

    def poll(self) -> bool:
        """Look at the file; whether a new configuration is in force now."""
        if not self.path:
            return False
        seen = self._look()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            new = self._read()
        except ConfigurationError as error:
            if str(error) != self._problem:
                log.error("%s; the configuration in force is kept", error)
            self._problem = str(error)
            return False
        self._problem = ""
        if new == self.configuration:
            return False
        self.configuration = new
        log.info("%s: a new configuration is in force: actions %s", self.path, ", ".join(new.actions))
        return True

    def _read(self) -> Configuration:
        try:
            text = Path(self.path).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error.strerror}; check --scheduler-conf") from None
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error}; save it as UTF-8") from None
        try:
            return self._load(text)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.path}: {error}") from None
        except RecursionError:
            raise ConfigurationError(f"{self.path}: it is nested too deep; use fewer levels") from None

    def _load(self, text: str) -> Configuration:
        configuration = load(text, self._actions)
        for warning in (*configuration.warnings, *self._unknown_plugins(configuration)):
            log.warning("%s: %s", self.path or "configuration", warning)
        return configuration

    def _unknown_plugins(self, configuration: Configuration) -> list[str]:
        warnings = []
        for i, tier in enumerate(configuration.tiers):
            for j, option in enumerate(tier):
                if option.name not in self._plugins:
                    near = get_close_matches(option.name, list(self._plugins), 1)
                    hint = f"; did you mean {near[0]}?" if near else ""
                    warnings.append(f"tiers[{i}].plugins[{j}]: no plugin {option.name}, it is skipped{hint}")
        return warnings

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
