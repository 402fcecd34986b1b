"""All targets, by area."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets import answers, configuration, files, kinds, printed, streams, texts, webhooks

ALL: dict[str, Target] = {
    target.name: target
    for area in (kinds, webhooks, configuration, streams, answers, files, texts, printed)
    for target in area.targets()
}
