"""Admission of CronJobs: schedules, zones and names."""

import pytest

from volcano_py.webhooks.cronjobs import validate_cronjob


def cronjob(name="nightly", **spec):
    return {"metadata": {"name": name}, "spec": {"schedule": "0 3 * * *"} | spec}


@pytest.mark.parametrize(
    "allowed",
    [
        cronjob(),
        cronjob(schedule="@every 1m30s"),
        cronjob(schedule="@daily"),
        cronjob(schedule="*/15 6-16/4,20 ? JAN-mar mon"),
        cronjob(timeZone="Europe/Berlin"),
        cronjob(timeZone="Etc/GMT+5"),
        cronjob(timeZone=None),
        cronjob("n" * 52),
    ],
)
def test_allowed(allowed):
    assert validate_cronjob(allowed) == []


@pytest.mark.parametrize(
    ("denied", "message"),
    [
        (cronjob(schedule=""), "cronjob nightly: spec.schedule: schedule is required, but got empty"),
        (cronjob(schedule="CRON_TZ=UTC 0 3 * * *"), "should not contain TZ"),
        (cronjob(schedule="0 3 * *"), "'0 3 * *': schedule is not a valid cron expression: expected 5 fields, found 4"),
        (cronjob(schedule="60 3 * * *"), "'60' in the field of the minute is not a number or range from 0 to 59"),
        (cronjob(schedule="0 3 * * 7"), "'7' in the field of the day of week"),
        (cronjob(schedule="0 5-3 * * *"), "'5-3' in the field of the hour"),
        (cronjob(schedule="*/0 3 * * *"), "'*/0' in the field of the minute"),
        (cronjob(schedule="0 3 * foo *"), "'foo' in the field of the month is not a number"),
        (cronjob(schedule="1-2-3 3 * * *"), "'2-3' in the field of the minute"),
        (cronjob(schedule="@noon"), "'@noon' is none of @yearly"),
        (cronjob(schedule="@every soon"), "invalid duration 'soon'"),
        (cronjob(schedule=f"@every {'9' * 400}h"), "exceeds Go's maximum duration"),
        (cronjob(timeZone=""), "got empty string; omit it"),
        (cronjob(timeZone="Local"), "timeZone can't be Local"),
        (cronjob(timeZone="Europe"), "'Europe': invalid timeZone"),
        (cronjob(timeZone="Europe/Bärlin"), "unknown timeZone: 'Bärlin'"),
        (cronjob(timeZone="../../etc/passwd"), "unknown timeZone: '..'"),
        (cronjob("n" * 53), "no more than 52 characters"),
        (cronjob("-n"), "invalid cronJob name '-n'"),
    ],
)
def test_denied(denied, message):
    problems = validate_cronjob(denied)
    assert any(message in problem for problem in problems), problems


def test_all_problems_are_reported_together():
    assert len(validate_cronjob(cronjob("n" * 53, schedule="never", timeZone="Nowhere"))) == 3
