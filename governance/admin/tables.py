"""The tables that operators see, column by column: without content, sealed data and free text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse

from governance.access.decisions.grantables import grantables
from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.admin.site import site
from governance.audit.services import record
from governance.database import database_now
from governance.errors import Invalid, NotFound
from governance.jobs.cron import next_run
from governance.jobs.schedules import schedule_update
from governance.models import Job, Member, Schedule, Tenant
from governance.vocabulary import Permission, Verb
from governance.web.pages import see_other

if TYPE_CHECKING:
    BaseAdmin = admin.ModelAdmin[Any]
    ScheduleBase = forms.ModelForm[Schedule]
else:
    BaseAdmin = admin.ModelAdmin
    ScheduleBase = forms.ModelForm

ROWS = 50


def actor_of(request: HttpRequest) -> Actor:
    """Return the operator as an actor of the tenant of the session."""
    actor: Actor = request.actor  # type: ignore[attr-defined]
    return actor


class ReadOnlyAdmin(BaseAdmin):
    """A table that can only be read. Subclasses list the columns; `kind`: the name of a row's kind in the audit log."""

    kind = ""
    actions = None
    list_per_page = list_max_show_all = ROWS
    show_full_result_count = False
    change_form_template = "admin/row.html"
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Return the rows of the tenant; the filter repeats what row-level security enforces."""
        rows = super().get_queryset(request)
        name = "id" if self.model is Tenant else "tenant_id"
        return rows.filter(**{name: actor_of(request).tenant_id})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [name for name in self.get_fields(request, obj) if isinstance(name, str)]

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the list and of one row, without those for adding, deleting and history."""
        return [pattern for pattern in super().get_urls() if str(pattern.name).endswith(("_changelist", "_change"))]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the filters of the page: a look-up in another column would reveal values that the page omits."""
        return lookup.removesuffix("__exact") in self.get_list_filter(request)

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row and record the view in the audit log. Raises NotFound."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise NotFound
        return found

    def changelist_view(self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, {**(extra_context or {})})
        shown = getattr(response, "context_data", None) or {}
        if "cl" in shown:
            self._record(request, [row.pk for row in shown["cl"].result_list])
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = self.get_object(request, object_id)
        self._record(request, [shown.pk])
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "subtitle": shown.pk})

    def _record(self, request: HttpRequest, ids: Sequence[UUID]) -> None:
        record(actor=actor_of(request), verb=Verb.OPERATOR_VIEWED, object_type=self.kind, object_ids=ids)


@admin.register(Tenant, site=site)
class TenantAdmin(ReadOnlyAdmin):
    kind = "tenant"
    list_display = ("slug", "name", "second_factor_required", "created_at")
    fields = ("id", "slug", "name", "second_factor_required", "created_at")


@admin.register(Member, site=site)
class MemberAdmin(ReadOnlyAdmin):
    kind = "member"
    list_display = ("display_name", "email", "role_name", "created_at", "removed_at")
    list_filter = ("role__name",)
    list_select_related = ("user", "role")
    search_fields = ("display_name", "user__email")
    fields = ("id", "display_name", "email", "role_name", "timezone", "created_at", "proved_at", "removed_at")

    @admin.display(description="E-mail address", ordering="user__email")
    def email(self, row: Member) -> str:
        return row.user.email

    @admin.display(description="Role", ordering="role__name")
    def role_name(self, row: Member) -> str:
        return row.role.name


@admin.register(Job, site=site)
class JobAdmin(ReadOnlyAdmin):
    kind = "job"
    list_display = ("kind", "status", "done", "total", "attempts", "dead_letter", "member", "created_at", "finished_at")
    list_filter = ("status", "dead_letter", "kind")
    list_select_related = ("member",)
    fields = (
        "id", "kind", "status", "done", "total", "attempts", "dead_letter", "error_code", "member", "principal_kind",
        "principal_id", "created_at", "started_at", "finished_at", "undo_until", "kept_until",
    )  # fmt: skip

    @admin.display(description="Error")
    def error_code(self, row: Job) -> str:
        return str((row.error or {}).get("code", ""))


class ScheduleForm(ScheduleBase):
    class Meta:
        model = Schedule
        fields = ("cron", "timezone", "enabled")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            next_run(cleaned.get("cron", ""), cleaned.get("timezone", ""), database_now())
        except Invalid as failure:
            for fault in failure.errors:
                if fault.field not in self.errors:
                    self.add_error(fault.field, fault.message)
        return cleaned


@admin.register(Schedule, site=site)
class ScheduleAdmin(ReadOnlyAdmin):
    """Schedules, whose times and switch can be changed through the service and its permission check."""

    kind = "schedule"
    form = ScheduleForm
    list_display = ("kind", "cron", "timezone", "enabled", "next_run_at", "last_job")
    list_filter = ("enabled", "kind")
    list_select_related = ("last_job",)
    fields = (
        "id",
        "kind",
        "cron",
        "timezone",
        "enabled",
        "next_run_at",
        "principal_kind",
        "principal_id",
        "created_at",
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        changed = ScheduleForm.Meta.fields if self.has_change_permission(request, obj) else ()
        return [name for name in super().get_readonly_fields(request, obj) if name not in changed]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_allowed(actor_of(request), Permission.OPERATIONS_MANAGE)

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in ScheduleForm.Meta.fields}
        schedule_update(actor=actor_of(request), schedule_id=obj.pk, changes=changes)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Do nothing: the service has written the audit entry."""

    def response_change(self, request: HttpRequest, obj: Schedule) -> HttpResponseBase:  # type: ignore[override]
        return see_other(reverse("admin:governance_schedule_changelist"))


class GrantAdmin(ReadOnlyAdmin):
    kind = "grant"
    list_display = ("content_object_id", "grantee", "action", "effect", "expires_at", "given_by_kind", "given_by")
    list_filter = ("effect",)
    list_select_related = ("group", "permission")
    fields = (
        "id", "content_object_id", "grantee", "action", "effect", "expires_at", "given_by_kind", "given_by",
        "created_at",
    )  # fmt: skip

    @admin.display(description="Object")
    def content_object_id(self, row: Any) -> UUID:
        """Return the id alone, since a path or text would be content."""
        found: UUID = row.__dict__["content_object_id"]
        return found

    @admin.display(description="Grantee")
    def grantee(self, row: Any) -> str:
        return f"{row.group.kind} {row.group.principal_id}"

    @admin.display(description="Action")
    def action(self, row: Any) -> str:
        return str(row.permission.codename)


for _one in grantables():
    site.register(_one.grants, GrantAdmin)
