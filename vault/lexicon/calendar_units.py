"""Days, weeks, months, seasons and years as periods of time. Days are UTC days; weeks begin on Monday. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
ONE_DAY = timedelta(days=1)
FIRST_MONTHS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}


@dataclass(frozen=True)
class Grain:
    """The weight of a named time by its length. told_after: people mostly talk about it in the days after it."""

    weight: float
    told_after: bool = False


DAY = WEEK = Grain(1.0, told_after=True)
MONTH = Grain(1.0)
SEASON = Grain(0.8)
YEAR = Grain(0.5)
VAGUE = Grain(0.3)


@dataclass(frozen=True, order=True)
class Period:
    """The time from `start` to before `end`. fit: 1 for the likely meaning, less for another or neighbouring time."""

    start: datetime
    end: datetime
    fit: float = 1.0


@dataclass(frozen=True)
class Meaning:
    """The possible meanings of a named time; without periods it has no meaning.

    coming: the next such day, if the text names a weekday or day of a month without the week or month.
    """

    grain: Grain
    periods: tuple[Period, ...]
    coming: Period | None = None

    def list_likely_times(self) -> list[Period]:
        """Return the periods with fit 1, oldest first; all of them if there is none."""
        return sorted(period for period in self.periods if period.fit == 1.0) or sorted(self.periods)


def midnight(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def days(first: datetime, count: int = 1, fit: float = 1.0) -> Period:
    return Period(first, first + count * ONE_DAY, fit)


def week(day: datetime, fit: float = 1.0) -> Period:
    """Return the week that contains `day`."""
    return days(day - day.weekday() * ONE_DAY, 7, fit)


def months(year: int, month: int, count: int = 1, fit: float = 1.0) -> Period:
    """Return `count` months from this one; `month` may lie outside 1..12: 0 is the December before."""
    return Period(_first(year, month), _first(year, month + count), fit)


def year_of(year: int, fit: float = 1.0) -> Period:
    return months(year, 1, 12, fit)


def season(year: int, name: str) -> Period:
    """Return a season of the northern hemisphere; the winter of a year begins in that year."""
    return months(year, FIRST_MONTHS[name], 3)


def _first(year: int, month: int) -> datetime:
    years, months_beyond = divmod(month - 1, 12)
    return datetime(year + years, months_beyond + 1, 1, tzinfo=UTC)
