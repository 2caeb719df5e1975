"""The numbers at the top of the overview, each with a link to the rows that it counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from governance.vocabulary import JobStatus, Measure
from governance.web.charts import Bar, Spark, bars_of, spark_of
from governance.web.navigation import address_of
from vault.overview.attention import Attention, Waiting
from vault.overview.selectors import SOON, Overview, Use
from vault.vocabulary import Tier

MOST_BARS = 15


@dataclass(frozen=True)
class Tile:
    label: str
    value: str
    note: str
    icon: str
    address: str = ""
    small: str = ""
    spark: Spark | None = None
    bars: Sequence[Bar] = ()
    meter: int | None = None
    meter_extra: str = ""


def make_tiles(found: Overview, waiting: list[Attention]) -> list[Tile]:
    """Return the tiles. Before the first count, tiles that need counts are left out, since a 0 would be misread."""
    reviews = next((item for item in waiting if item.kind is Waiting.REVIEWS), None)
    if found.counted_at is None:
        return [*([_memories_tile(found)] if found.is_live else []), _reviews_tile(reviews)]
    tiles = [_memories_tile(found), _searches_tile(found), _expiring_tile(found), _reviews_tile(reviews)]
    tiles.append(_jobs_tile(found))
    if found.use is not None:
        tiles += [_storage_tile(found.use[Measure.BYTES]), _tokens_tile(found.use[Measure.MODEL_TOKENS])]
        tiles += [_tiers_tile(found.tiers)] if found.tiers else []
    if found.audit is not None:
        tiles.append(_audit_tile(found))
    return tiles


def _reviews_tile(reviews: Attention | None) -> Tile:
    note = _("Somebody should decide") if reviews else _("Nothing waits")
    return Tile(_("Reviews waiting"), reviews.count_text if reviews else "0", note, "inbox", address_of("reviews"))


def _memories_tile(found: Overview) -> Tile:
    value = f"{found.memories:,}{'+' if found.is_capped else ''}"
    note = "" if found.growth is None else _("%(n)s in 7 days") % {"n": f"{found.growth:+,}"}
    totals = [sum(some) for some in zip(*found.series.values(), strict=True)]
    return Tile(_("Memories"), value, note, "cards", reverse("memories"), spark=spark_of(totals) if totals else None)


def _searches_tile(found: Overview) -> Tile:
    percent = found.answered_percent
    note = _("of %(n)s searches") % {"n": f"{found.searches_total:,}"}
    value = "—" if percent is None else f"{percent:.1f} %"
    address = f"{reverse('audit_log')}?verb=memory.searched" if found.audit is not None else ""
    daily = [sum(some) for some in zip(*found.searches.values(), strict=True)]
    spark = spark_of(daily) if any(daily) else None
    return Tile(_("Searches answered"), value, note, "zoom-scan", address, spark=spark)


def _expiring_tile(found: Overview) -> Tile:
    days = [found.days[-1] + timedelta(days=ahead) for ahead in range(SOON)]
    counts = [found.expiring.get(day, 0) for day in days]
    bars = bars_of(counts, every="is-warn") if any(counts) else []
    note = ""
    if any(counts):
        day = days[counts.index(max(counts))]
        note = _("most on %(day)s") % {"day": date_format(day, "MONTH_DAY_FORMAT")}
    address = f"{reverse('memories')}?order=expiring"
    return Tile(_("Expiring in 7 days"), f"{found.expiring_soon:,}", note, "hourglass", address, bars=bars)


def _jobs_tile(found: Overview) -> Tile:
    counts = {status: sum(found.jobs.get(status, [])) for status in JobStatus}
    running = counts[JobStatus.RUNNING] + counts[JobStatus.PENDING] + counts[JobStatus.CANCELLING]
    note = _("%(failed)s failed, %(running)s running") % {"failed": counts[JobStatus.FAILED], "running": running}
    daily = [sum(some) for some in zip(*found.jobs.values(), strict=True)][-MOST_BARS:]
    bars = bars_of(daily) if any(daily) else []
    value = f"{counts[JobStatus.SUCCEEDED]:,}"
    return Tile(_("Jobs"), value, note, "clock-play", address_of("jobs"), small=_("done"), bars=bars)


def _storage_tile(use: Use) -> Tile:
    note = _("no quota") if use.limit is None else _("of %(limit)s") % {"limit": filesizeformat(use.limit)}
    extra = "is-bad" if (use.percent or 0) >= 90 else ""
    address = address_of("quotas")
    return Tile(_("Storage"), filesizeformat(use.used), note, "database", address, meter=use.percent, meter_extra=extra)


def _tiers_tile(tiers: Mapping[Tier, tuple[int, int]]) -> Tile:
    """Return the tile with the bytes of each storage tier, and the numbers of cold and archived memories as a note."""
    shown = " · ".join(filesizeformat(tiers[tier][1]) for tier in Tier)
    moved = {"cold": f"{tiers[Tier.COLD][0]:,}", "archived": f"{tiers[Tier.ARCHIVE][0]:,}"}
    note = _("%(cold)s cold, %(archived)s archived") % moved
    address = f"{reverse('memories')}?state=archived"
    # Three sizes do not fit in the large font of a single number.
    return Tile(_("Hot · cold · archive"), "", note, "archive", address, small=shown)


def _tokens_tile(use: Use) -> Tile:
    note = (
        _("this month, no quota") if use.limit is None else _("of %(limit)s this month") % {"limit": f"{use.limit:,}"}
    )
    return Tile(_("Model tokens"), f"{use.used:,}", note, "cpu", address_of("quotas"), meter=use.percent)


def _audit_tile(found: Overview) -> Tile:
    assert found.audit is not None
    address = reverse("audit_verify")
    if found.audit.fault is not None:
        return Tile(
            _("Audit log"), _("Broken"), _("at entry %(n)s") % {"n": found.audit.fault}, "shield-check", address
        )
    note = _("until entry %(n)s, %(day)s") % {
        "n": f"{found.audit.upto:,}",
        "day": date_format(found.audit.day, "MONTH_DAY_FORMAT"),
    }
    return Tile(_("Audit log"), _("Verified"), note, "shield-check", address)
