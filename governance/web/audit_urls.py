from django.urls import path

from governance.web import audit, audit_exports

urlpatterns = [
    path("audit/", audit.audit_log, name="audit_log"),
    path("audit/<uuid:entry_id>/", audit.audit_entry, name="audit_entry"),
    path("audit/verify/", audit.audit_verify, name="audit_verify"),
    path("audit/checkpoints/", audit.audit_checkpoints, name="audit_checkpoints"),
    path("audit/checkpoints/<uuid:checkpoint_id>/", audit.audit_checkpoint, name="audit_checkpoint"),
    path("audit/public-key/", audit.audit_key, name="audit_key"),
    path("audit/verifier/", audit.audit_verifier, name="audit_verifier"),
    path("audit/unusual-reads/", audit.audit_unusual, name="audit_unusual"),
    path("audit/permission-changes/", audit.audit_changes, name="audit_changes"),
    path("audit/permission-changes/csv/", audit.audit_changes_csv, name="audit_changes_csv"),
    path("audit/exports/", audit_exports.audit_exports, name="audit_exports"),
    path("audit/exports/<uuid:export_id>/file/", audit_exports.audit_export_file, name="audit_export_file"),
    path("audit/sinks/", audit_exports.audit_sinks, name="audit_sinks"),
    path("audit/sinks/<uuid:sink_id>/retry/", audit_exports.audit_sink_retry, name="audit_sink_again"),
    path("audit/sinks/<uuid:sink_id>/remove/", audit_exports.audit_sink_end, name="audit_sink_end"),
]
