"""Template filters for times."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html

register = template.Library()


@register.filter
def time_element(moment: datetime | None) -> str:
    """Return a `time` element: a short time with the full time as its title; a dash for None. Faster than template
    filters.
    """
    if moment is None:
        return "—"
    there = timezone.localtime(moment)
    whole = f"{there:%Y-%m-%d %H:%M %Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', there.isoformat(), whole, moment_short(moment))


@register.filter
def moment_short(moment: datetime) -> str:
    """Return the hour of a time of today, day and month of one this year, else the date; in the reader's time zone."""
    moment, now = timezone.localtime(moment), timezone.localtime()
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    return date_format(moment, "j M" if moment.year == now.year else "j M Y")
