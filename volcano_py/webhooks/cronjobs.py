"""Admission of CronJobs: schedule, time zone and name. Volcano: /cronjobs/validate.

The Job in the template is validated when it is created.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.api.cron import parse_schedule
from volcano_py.webhooks.identifiers import qualified_name
from volcano_py.webhooks.lookup import Manifest

MAX_NAME = 52
"""The name of a Job has eleven more characters: a dash and the start time in minutes."""

LONGEST_SCHEDULE = 1024
"""Far longer than a list of all minutes; the time to read a schedule grows faster than its length."""
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)
_ZONES = "https://www.iana.org/time-zones"


def validate_cronjob(cronjob: Manifest) -> list[str]:
    """Problems of a new or updated CronJob."""
    name = (cronjob.get("metadata") or {}).get("name", "")
    problems = [*check_spec(cronjob.get("spec") or {}), *check_name(name)]
    return [f"cronjob {name}: {problem}" for problem in problems]


def check_name(name: str) -> Iterator[str]:
    if len(name) > MAX_NAME:
        yield (
            f"metadata.name: cronJob name must be no more than {MAX_NAME} characters "
            f"to accommodate job name suffix (max 63 total), got {len(name)}"
        )
    if problem := qualified_name(name):
        yield f"metadata.name: invalid cronJob name {name!r}: {problem}"


def check_spec(spec: Mapping[str, Any]) -> Iterator[str]:
    """Problems of schedule and time zone."""
    yield from _check_schedule(spec.get("schedule") or "")
    zone = spec.get("timeZone")
    if zone is not None:
        yield from _check_zone(zone)


def _check_schedule(schedule: str) -> Iterator[str]:
    if not schedule:
        yield "spec.schedule: schedule is required, but got empty; use five fields such as '*/5 * * * *', or @hourly"
    elif len(schedule) > LONGEST_SCHEDULE:
        yield (
            f"spec.schedule: Invalid value: a schedule of {len(schedule)} characters: must be no more than "
            f"{LONGEST_SCHEDULE}; use ranges and steps such as 0-59/5"
        )
    elif "TZ" in schedule:
        yield (
            f"spec.schedule: Invalid value: {schedule!r}: schedule should not contain TZ or CRON_TZ, "
            "TZ should only be set in the timeZone field"
        )
    else:
        try:
            parse_schedule(schedule)
        except ValueError as error:
            yield f"spec.schedule: Invalid value: {schedule!r}: schedule is not a valid cron expression: {error}"


def _check_zone(zone: str) -> Iterator[str]:
    if not zone:
        yield "spec.timeZone: timeZone must be nil or non-empty string, got empty string; omit it or set a time zone"
        return
    if zone.lower() == "local":
        yield f"spec.timeZone: timeZone can't be {zone}, and must be defined in {_ZONES}"
        return
    if len(zone) > LONGEST_SCHEDULE:
        yield f"spec.timeZone: Invalid value: a name of {len(zone)} characters; use one of {_ZONES}"
        return
    for part in zone.split("/"):
        if not _ZONE_PART.fullmatch(part) or part in (".", "..") or part.startswith("-"):
            yield f"spec.timeZone: Invalid value: {zone!r}: unknown timeZone: {part!r} is not valid in a time zone name"
            break
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        yield f"spec.timeZone: Invalid value: {zone!r}: invalid timeZone; use one of {_ZONES}"
