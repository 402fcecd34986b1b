"""The section `extenders` of a configuration: each entry is a plugin of every profile. Kubernetes: extender.go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.profiles.plugins.outside.extender_webhook import ExtenderWebhook, ExtenderWebhookArguments
from volcano_py.scheduler.profiles.registry import Registration, Registry

_FIT = "NodeResourcesFit"


class Extenders:
    """The extenders of a configuration. Raises ValueError with the entry and the field."""

    def __init__(self, given: Sequence[Any]) -> None:
        self._all: dict[str, ExtenderWebhookArguments] = {}
        for i, entry in enumerate(given):
            where = f"extenders[{i}]"
            try:
                read = msgspec.convert(entry, ExtenderWebhookArguments)
                parse_duration(read.http_timeout)
            except (msgspec.ValidationError, ValueError) as e:
                raise ValueError(f"{where}: {e}") from None
            if not read.url_prefix.startswith(("http://", "https://")):
                raise ValueError(f"{where}, urlPrefix: {read.url_prefix!r} is not an http or https URL")
            if read.prioritize_verb and read.weight <= 0:
                raise ValueError(f"{where}, weight: {read.weight} must be above 0 for an extender that prioritizes")
            name = f"extender {read.url_prefix}"
            if name in self._all:
                raise ValueError(f"{where}, urlPrefix: {read.url_prefix} is configured twice")
            self._all[name] = read
        if sum(bool(a.bind_verb) for a in self._all.values()) > 1:
            raise ValueError("extenders: at most one may have a bindVerb")

    def registry(self, registry: Registry) -> Registry:
        """The registry with the extenders."""
        made = {
            n: Registration(ExtenderWebhook, ExtenderWebhook, ExtenderWebhookArguments, default=False)
            for n in self._all
        }
        return {**registry, **made}

    def add_to(self, points: dict[str, list[str]], weights: dict[str, int], arguments: dict[str, Any]) -> None:
        """Add them to a profile: they filter and score after all plugins, and bind before them."""
        for name, a in self._all.items():
            points["filter"].append(name)
            arguments[name] = a
            if a.prioritize_verb:
                points["score"].append(name)
                weights[name] = a.weight
            if a.bind_verb:
                points["bind"].insert(0, name)
            ignored = [r.name for r in a.managed_resources if r.ignored_by_scheduler]
            if _FIT in arguments:
                arguments[_FIT].ignored_resources += ignored
