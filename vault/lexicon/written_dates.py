"""Days and periods in words: "7 February 2027", 2027年2月7日. Pure."""

from datetime import date

from vault.lexicon.calendar_units import ONE_DAY, Period, months

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
YEAR = 360 * ONE_DAY  # and longer


def write_day(day: date, language: str) -> str:
    """Return a day in English, or in Chinese if `language` is `zh`."""
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def write_period(period: Period, language: str) -> str:
    """Return a day, a month, a year, or the first and last day of another period."""
    length, start = period.end - period.start, period.start.date()
    if length <= ONE_DAY:
        return write_day(start, language)
    if start.day == 1 and period.end.day == 1 and length > YEAR:
        return f"{start.year}年" if language == "zh" else str(start.year)
    if start.day == 1 and period == months(start.year, start.month, fit=period.fit):
        return f"{start.year}年{start.month}月" if language == "zh" else f"{MONTH_NAMES[start.month - 1]} {start.year}"
    last = (period.end - ONE_DAY).date()
    return f"{write_day(start, language)} – {write_day(last, language)}"
