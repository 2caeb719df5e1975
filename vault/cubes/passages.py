"""Texts that quote other memories by reference, with the references replaced by the quoted passages. Pure."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from vault.lexicon.recurrences import read_recurrence
from vault.lexicon.resolved_dates import event_period, write_dates
from vault.lexicon.tokens import language_of
from vault.lexicon.written_dates import write_day, write_period

MARKER = re.compile(r"\[(\d{1,2})\]")
SAID = {"en": "{name} said", "zh": "{name}说"}
SEPARATOR = {"en": ", ", "zh": "，"}
HAPPENS = {"en": ("happens {day}", "happened {day}"), "zh": ("时间是{day}", "时间是{day}")}  # to come, and past
# The readers themselves, and the roles that stand for a name.
WHO = {
    "en": {"own": "you", "user": "the user", "assistant": "the assistant", "system": "the system", "tool": "a tool"},
    "zh": {"own": "你", "user": "用户", "assistant": "助手", "system": "系统", "tool": "工具"},
}


@dataclass(frozen=True)
class Passage:
    """A quoted passage in its current wording. time: when it was said, in the reader's time zone; happens: the time
    of its event, if it is another. is_own: the reader said it.
    """

    text: str = field(repr=False)
    speaker: str = field(repr=False)
    time: datetime | None
    happens: datetime | None = None
    is_own: bool = False

    def line(self, marker: int) -> str:
        """Return the quote with its marker and who said it when, and the day of its event or the dates that its
        temporal expressions mean.
        """
        return f"“{self.text}” [{marker}]" + (f" ({note})" if (note := self._write_note()) else "")

    def _write_note(self) -> str:
        language = "zh" if language_of(self.text) == "zh" else "en"
        name = WHO[language].get("own" if self.is_own else self.speaker.casefold(), self.speaker)
        parts = [SAID[language].format(name=name)] if name else []
        parts += [write_day(self.time.date(), language)] if self.time else []
        source = SEPARATOR[language].join(parts)
        if self.time is None:
            return source
        recurrence = read_recurrence(self.text)
        event = self.happens if self.happens is not None and self.happens.date() != self.time.date() else None
        if recurrence is not None and (event is None or recurrence.stands_for(event.date())):
            return source  # "every Thursday" tells of no single day
        if event is not None:
            word = HAPPENS[language][event < self.time]
            return f"{source} · {word.format(day=write_period(event_period(self.text, self.time, event), language))}"
        dates = write_dates(self.text, self.time.replace(tzinfo=UTC))  # by its local day
        return "; ".join(part for part in (source, dates) if part)
