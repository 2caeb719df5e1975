"""Filters of templates."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format

register = template.Library()


@register.filter
def moment_short(moment: datetime) -> str:
    """A time of today as its hour, one of this year as day and month, another one as a date; in the reader's zone."""
    moment, now = timezone.localtime(moment), timezone.localtime()
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    return date_format(moment, "j M" if moment.year == now.year else "j M Y")
