"""Cron expressions: minute, hour, day of month, month, day of week, in a time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery.schedules import ParseException, crontab

from governance.errors import FieldError, Invalid


def next_run(cron: str, timezone: str, after: datetime) -> datetime:
    """Return the first time after `after` that matches, in UTC. Raises Invalid."""
    zone, schedule = _zone(timezone), _schedule(cron)
    schedule.nowfun = lambda: after
    start, delta, _ = schedule.remaining_delta(after.astimezone(zone), tz=zone)
    found: datetime = start + delta
    return found.astimezone(UTC)


def _schedule(cron: str) -> crontab:
    try:
        return crontab.from_string(cron)
    except (ValueError, TypeError, ParseException) as error:
        raise Invalid(errors=[FieldError("cron", "five fields: minute hour day month weekday")]) from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid(errors=[FieldError("timezone", "a name as Europe/Berlin or UTC")]) from error
