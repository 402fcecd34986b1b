"""The start times of a schedule in a time zone. Volcano: robfig/cron, and the arithmetic of the cronjob controller.

When clocks are set forward, skipped times do not fire; when they are set back, repeated times fire twice. `@every`
counts from the last start (or from the creation of the CronJob) and ignores the time zone.

Times are seconds since the epoch.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from volcano_py.api.batch import CronJob
from volcano_py.api.cron import Calendar, Every, parse_schedule

DELTA_SECONDS = 0.1
"""Added to a start time, so that slightly slow clocks have passed it, too."""
TOO_MANY = 100
"""Number of missed starts from which an Event reports them."""

_YEARS = 5
"""A calendar that does not fire within this many years never fires."""
_LOOK_BACK = (3600, 86_400, 31 * 86_400, 366 * 86_400, (8 * 366 + 1) * 86_400)
"""Windows in seconds to search for the latest start, short ones first: it is usually recent."""


class UnknownZone(ValueError):
    """The IANA database does not contain the time zone."""


class NeverFires(ValueError):
    """The day does not exist, such as the 31st of February."""


class Timetable(NamedTuple):
    rule: Calendar | Every
    zone: tzinfo

    def after(self, moment: float) -> float | None:
        """The first start after a moment; None if there is none within five years."""
        if isinstance(self.rule, Every):
            return math.floor(moment) + self.rule.seconds
        return _next(self.rule, self.zone, moment)

    def latest(self, base: float, earliest: float, now: float) -> float | None:
        """The last start after `earliest`, up to now; `@every` counts from `base`."""
        if isinstance(self.rule, Every):
            periods = (math.floor(now) - math.floor(base)) // self.rule.seconds
            last = math.floor(base) + periods * self.rule.seconds
            return last if last > max(base, earliest) else None
        for seconds in _LOOK_BACK:
            since = max(earliest, now - seconds)
            found = self.after(since)
            if found is not None and found <= now:
                while (later := self.after(found)) is not None and later <= now:
                    found = later
                return found
            if since == earliest:
                break
        return None


class Missed(NamedTuple):
    """The result of `look_back`: its beginning, the due start, and whether earlier starts were missed."""

    earliest: float
    due: float | None
    too_many: bool = False
    some: bool = False


def timetable(cronjob: CronJob) -> tuple[Timetable, bool]:
    """The schedule of a CronJob, and whether it contains a time zone. Raises ValueError (UnknownZone for the zone)."""
    schedule, zone = cronjob.spec.schedule, cronjob.spec.time_zone
    own_zone = "TZ" in schedule
    if own_zone:
        head, _, rest = schedule.partition(" ")
        name, equals, zone = head.partition("=")
        if name not in ("TZ", "CRON_TZ") or not equals:
            raise ValueError(f"{head!r} is not TZ=<zone>; set the zone in spec.timeZone")
        schedule = rest.strip()
    return Timetable(parse_schedule(schedule), find_zone(zone)), own_zone


def find_zone(name: str | None) -> tzinfo:
    """The time zone; UTC for an empty name. Raises UnknownZone."""
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"unknown time zone {name!r}: use one of https://www.iana.org/time-zones") from None


def look_back(table: Timetable, base: float, deadline: float | None, now: float) -> Missed:
    """The due start: the last one since `base`, or within the last `deadline` seconds. Raises NeverFires."""
    earliest = base if deadline is None else max(base, now - deadline)
    first = table.after(earliest)
    second = table.after(first) if first is not None else None
    if first is None or second is None:
        raise NeverFires("the schedule never fires: its day does not exist")
    due = table.latest(base, earliest, now)
    if due is None or now < second:
        return Missed(earliest, due, some=now >= second)
    missed = (now - first) // (second - first) + 1
    return Missed(earliest, due, too_many=missed > TOO_MANY, some=True)


def until_next(table: Timetable, base: float, now: float) -> float:
    """Seconds from now to the next start, plus a margin. Raises NeverFires."""
    seen = look_back(table, base, None, now)
    following = table.after(seen.earliest if seen.due is None else seen.due)
    if following is None:
        raise NeverFires("the schedule never fires: its day does not exist")
    return following + DELTA_SECONDS - now


def _next(rule: Calendar, zone: tzinfo, moment: float) -> float | None:
    """Advances in real time and checks the local time, so that skipped and repeated hours are handled."""
    at = (math.floor(moment) // 60 + 1) * 60
    last_year = datetime.fromtimestamp(at, zone).year + _YEARS
    while True:
        wall = datetime.fromtimestamp(at, zone)
        if wall.year > last_year:
            return None
        if wall.month not in rule.months:
            month = wall.year * 12 + wall.month  # months since year 0, of the following one
            at = _midnight(month // 12, month % 12 + 1, 1, zone)
        elif not _day_fits(rule, wall):
            following = wall.date() + timedelta(days=1)
            at = _midnight(following.year, following.month, following.day, zone)
        elif wall.hour not in rule.hours:
            at += 3600 - wall.minute * 60
        elif wall.minute not in rule.minutes:
            at += 60
        else:
            return at


def _midnight(year: int, month: int, day: int, zone: tzinfo) -> int:
    """The first moment of a day."""
    return int(datetime(year, month, day, tzinfo=zone).timestamp())


def _day_fits(rule: Calendar, wall: datetime) -> bool:
    """As in cron: if both days are restricted, one of them must match."""
    day, weekday = wall.day in rule.days, wall.isoweekday() % 7 in rule.weekdays
    return day and weekday if rule.any_day or rule.any_weekday else day or weekday
