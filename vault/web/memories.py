"""One memory: its page, the pane next to a chat, and the pane next to the list."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.object_names import Name, names_find
from governance.vocabulary import Permission
from governance.web.pages import draw, safe_page, wants_part
from governance.web.pagination import Newest, number_or_none
from vault.cubes.comparison import VersionDifference, difference_of, versions_compare
from vault.cubes.lookup import cube_target
from vault.cubes.selectors import CubeView, VersionView, cube_get, versions_list
from vault.lifecycle.fusion import is_undoable
from vault.lifecycle.selectors import StateChange, state_changes_list, transition_last
from vault.provenance.selectors import Lineage, lineage_open
from vault.reviews.selectors import findings_list
from vault.vocabulary import State
from vault.web.findings import mark_findings
from vault.web.holds import keeping_context
from vault.web.labels import make_labels
from vault.web.lineage import lineage_draw
from vault.web.memory_access import access_context
from vault.web.memory_reader import inactive_context, reader_context
from vault.web.memory_rows import layer_class, make_heat
from vault.web.tool_calls import tool_call_make

History = list[tuple[VersionView | None, StateChange | None]]
"""Versions and changes of state; one of each pair is None."""

VERSIONS = 20  # of one page


@safe_page
def memory(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    with acting(actor):  # one transaction for the whole page
        try:
            view = cube_get(actor=actor, cube_id=memory_id)
        except NotFound:
            return draw(request, "vault/memories/inactive.html", inactive_context(actor, memory_id))
        context = memory_context(request, actor, view)
        template = "vault/memories/_memory.html" if wants_part(request) else "vault/memories/memory.html"
        return draw(request, template, context)


@safe_page
def pane(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Show the pane next to the list of memories, as a part of a page."""
    try:
        return draw(request, "vault/memories/_reader.html", reader_context(request, actor, memory_id))
    except NotFound:
        return draw(request, "vault/memories/_inactive.html", inactive_context(actor, memory_id))


def memory_context(request: HttpRequest, actor: Actor, view: CubeView) -> dict[str, Any]:
    """Return the context of a memory's page. Use inside `acting`. Writes: AuditEntry."""
    cube = view.cube
    target = cube_target(cube)
    take = Newest(size=VERSIONS, key="number", cursor=number_or_none(request.GET.get("before", "")))
    versions = versions_list(actor=actor, cube_id=cube.id, pages=take)
    in_pane = wants_part(request)
    context = {
        "memory": view,
        "labels": make_labels(cube),
        "layer": layer_class(cube.layer),
        "heat": make_heat(view.heat),
        "pieces": mark_findings(view.words.content, findings_list(actor=actor, cube_id=cube.id)),
        "metadata": metadata_lines(view.words.metadata),
        "versions": versions,
        "versions_older": take.older,
        "in_pane": in_pane,
        "transition": transition_last(actor=actor, cube=cube) if cube.state != State.GENERATED else None,
        "is_undoable": is_undoable(cube),
        "may_change": is_allowed(actor, Permission.MEMORY_UPDATE, target),
        "may_delete": is_allowed(actor, Permission.MEMORY_DELETE, target),
        "may_share": is_allowed(actor, Permission.ACCESS_SHARE, target),
        "may_reword": bool(view.pack) and is_allowed(actor, Permission.STORE_MANAGE),
        **keeping_context(actor, view),
    }
    return context if in_pane else context | _page_context(request, actor, view, versions)


def _page_context(
    request: HttpRequest, actor: Actor, view: CubeView, versions: Sequence[VersionView]
) -> dict[str, Any]:
    """Return the part of the context that only the page needs, not the pane."""
    lineage = lineage_open(actor, view.cube)
    history = _merge_history(state_changes_list(actor=actor, cube=view.cube), versions, view.cube.version)
    return {
        "history": history,
        "authors": _find_authors(actor, history),
        "difference": _compare_versions(request, actor, view, versions),
        "lineage": lineage_draw(view, lineage) if _has_lineage(lineage) else None,
        "tool": tool_call_make(actor, view),
        "longest_content": settings.MAX_CONTENT_CHARACTERS,
        **access_context(actor, view),
    }


def _merge_history(changes: Iterable[StateChange], versions: Sequence[VersionView], present: int) -> History:
    """Return the versions of this part of the list and the changes between them, newest first."""
    if not versions:
        return []
    newest, oldest = versions[0].row, versions[-1].row
    shown = [
        change
        for change in changes
        if change.at >= oldest.created_at and (newest.number == present or change.at <= newest.created_at)
    ]
    entries: list[tuple[datetime, VersionView | None, StateChange | None]] = [
        (version.row.created_at, version, None) for version in versions
    ]
    entries += [(change.at, None, change) for change in shown]
    entries.sort(key=lambda entry: entry[0], reverse=True)
    return [(version, change) for _at, version, change in entries]


def _has_lineage(lineage: Lineage) -> bool:
    return bool(lineage.sources or lineage.derived)


def _find_authors(actor: Actor, history: History) -> Mapping[UUID, Name]:
    ids = {version.row.principal_id if version else change and change.principal_id for version, change in history}
    return names_find(actor.tenant_id, {principal_id for principal_id in ids if principal_id})


def _compare_versions(
    request: HttpRequest, actor: Actor, view: CubeView, versions: Sequence[VersionView]
) -> VersionDifference | None:
    """Compare the version in the query string with the present one; else the last two, if the actor may read both."""
    present = view.cube.version
    asked = number_or_none(request.GET.get("compare", ""))
    wanted = asked or present - 1
    if not 1 <= wanted < present:
        return None
    known = {version.row.number: version for version in versions}
    if wanted in known and present in known:
        return difference_of(known[wanted], known[present])
    return versions_compare(actor=actor, cube_id=view.cube.id, before=wanted, after=present) if asked else None


def metadata_lines(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the metadata as (name, text); values that are no texts become JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
        for name, value in metadata.items()
    ]
