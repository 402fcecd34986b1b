"""What the scheduler would report about a KubeSchedulerConfiguration at startup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, load
from volcano_py.scheduler.profiles.registry import Registry
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.review.findings import Finding


def profile_findings(document: Mapping[str, Any], registry: Registry) -> list[Finding]:
    """The findings about the profiles."""
    try:
        found = load(document, registry=registry)
        rules = PodScheduler(found).session_rules
    except ProfilesConfigurationError as error:
        return [Finding("error", str(error))]
    warnings = [Finding("warning", warning) for warning in found.warnings]
    return warnings + [Finding("hint", text) for text in rules.left_out]
