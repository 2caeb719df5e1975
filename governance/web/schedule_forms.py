"""The form of a schedule: times in everyday terms, converted to the cron expression that the API takes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from governance.errors import DomainError
from governance.jobs.schedules import ScheduleDraft
from governance.web.job_words import WEEKDAYS
from governance.web.page_forms import PageForm, style_fields
from governance.web.setting_forms import SettingsForm

if TYPE_CHECKING:
    from governance.models import Schedule

RHYTHMS = [
    ("minutes", _("Every few minutes")),
    ("hour", _("Every hour")),
    ("day", _("Every day")),
    ("week", _("Every week")),
    ("month", _("Every month")),
    ("cron", _("As a cron expression")),
]
EVERY = [(number, number) for number in ("5", "10", "15", "20", "30")]


class ScheduleForm(PageForm):
    """Times and settings of a schedule of a fixed kind; `chosen` has the settings. Only fields of the chosen rhythm are
    read.
    """

    rhythm = forms.ChoiceField(label=_("Runs"), choices=RHYTHMS)
    minutes = forms.ChoiceField(label=_("Minutes between runs"), choices=EVERY, required=False)
    at = forms.TimeField(label=_("At"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"))
    weekday = forms.ChoiceField(
        label=_("Weekday"), choices=[(str(n), day) for n, day in enumerate(WEEKDAYS)], required=False
    )
    day = forms.IntegerField(label=_("Day of the month"), min_value=1, max_value=31, required=False)
    cron = forms.CharField(
        label=_("Cron expression"),
        max_length=100,
        required=False,
        help_text=_("Minute, hour, day of the month, month, weekday."),
    )
    timezone = forms.CharField(label=_("Time zone"), max_length=64, widget=forms.TextInput(attrs={"list": "zones"}))
    enabled = forms.BooleanField(
        label=_("Enabled"), required=False, widget=forms.CheckboxInput(attrs={"class": "toggle"})
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        kind: str,
        initial: dict[str, Any] | None = None,
        choices: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.chosen = SettingsForm(data, kind=kind, initial=(initial or {}).get("settings"), choices=choices)
        style_fields(self.chosen)

    def is_valid(self) -> bool:
        """Return whether the times and the settings are valid; both are checked, so that all errors show."""
        return all([super().is_valid(), self.chosen.is_valid()])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        rhythm = cleaned.get("rhythm")
        if rhythm in {"day", "week", "month"} and not cleaned.get("at"):
            self.add_error("at", _("Say at what time."))
        if rhythm == "month" and not cleaned.get("day"):
            self.add_error("day", _("Say on which day."))
        return cleaned

    def changes(self) -> dict[str, Any]:
        """Return the values of a valid form as keyword arguments of a service."""
        cleaned = self.cleaned_data
        return {
            "cron": cron_of(cleaned),
            "timezone": cleaned["timezone"].strip(),
            "enabled": cleaned["enabled"],
            "settings": self.chosen.cleaned_data,
        }

    def draft(self, kind: str) -> ScheduleDraft:
        return ScheduleDraft(kind=kind, **self.changes())

    def blame(self, failure: DomainError) -> None:
        """Show each error of a service at its field, or above the settings."""
        for fault in failure.errors:
            if fault.field in self.fields:
                self.blame_field(fault)
            else:
                self.chosen.blame(fault)


def cron_of(cleaned: dict[str, Any]) -> str:
    """Return the cron expression of the form's values."""
    rhythm, at = cleaned["rhythm"], cleaned.get("at")
    if rhythm == "cron":
        return str(cleaned["cron"]).strip()
    if rhythm == "minutes":
        return f"*/{cleaned['minutes']} * * * *"
    if rhythm == "hour":
        return f"{at.minute if at else 0} * * * *"
    days = {"day": "* * *", "week": f"* * {cleaned['weekday']}", "month": f"{cleaned['day']} * *"}
    return f"{at.minute} {at.hour} {days[rhythm]}" if at else ""


def initial_of(schedule: "Schedule") -> dict[str, Any]:
    """Return the form's initial values from a schedule."""
    return {
        **rhythm_of(schedule.cron),
        "timezone": schedule.timezone,
        "enabled": schedule.enabled,
        "settings": schedule.settings,
    }


def rhythm_of(cron: str) -> dict[str, str]:
    """Return the form's values for a cron expression."""
    minute, hour, day, month, weekday = cron.split()
    plain = {"rhythm": "cron", "cron": cron}
    if month != "*":
        return plain
    if hour == day == weekday == "*":
        return _read_minute(minute) or plain
    if not minute.isdigit() or not hour.isdigit():
        return plain
    at = f"{int(hour):02}:{int(minute):02}"
    if day == weekday == "*":
        return {"rhythm": "day", "at": at}
    if day == "*" and weekday in {"0", "1", "2", "3", "4", "5", "6"}:
        return {"rhythm": "week", "at": at, "weekday": weekday}
    return {"rhythm": "month", "at": at, "day": day} if weekday == "*" and day.isdigit() else plain


def _read_minute(minute: str) -> dict[str, str]:
    if minute.isdigit():
        return {"rhythm": "hour", "at": f"00:{int(minute):02}"}
    every = minute.removeprefix("*/")
    return {"rhythm": "minutes", "minutes": every} if (every, every) in EVERY and every != minute else {}
