from django.urls import path

from governance.api import audit
from governance.api.audit_sinks import SinkRetryView, SinksView, SinkView

urlpatterns = [
    path("audit/", audit.AuditView.as_view()),
    path("audit/<uuid:entry_id>/", audit.AuditEntryView.as_view()),
    path("audit/verify/", audit.AuditVerifyView.as_view()),
    path("audit/export/", audit.AuditExportsView.as_view()),
    path("audit/export/<uuid:export_id>/", audit.AuditExportView.as_view()),
    path("audit/export/<uuid:export_id>/file/", audit.AuditExportFileView.as_view()),
    path("audit/checkpoints/", audit.AuditCheckpointsView.as_view()),
    path("audit/checkpoints/<uuid:checkpoint_id>/", audit.AuditCheckpointView.as_view()),
    path("audit/public-key/", audit.AuditKeyView.as_view()),
    path("audit/permission-changes/", audit.AuditChangesView.as_view()),
    path("audit/permission-changes/csv/", audit.AuditChangesCsvView.as_view()),
    path("audit/unusual-reads/", audit.AuditUnusualView.as_view()),
    path("audit/sinks/", SinksView.as_view()),
    path("audit/sinks/<uuid:sink_id>/", SinkView.as_view()),
    path("audit/sinks/<uuid:sink_id>/retry/", SinkRetryView.as_view()),
]
