from django.urls import path

from governance.web import trail, trail_keeping

urlpatterns = [
    path("audit/", trail.trail, name="trail"),
    path("audit/<uuid:entry_id>/", trail.trail_entry, name="trail_entry"),
    path("audit/verify/", trail.trail_verify, name="trail_verify"),
    path("audit/checkpoints/", trail.trail_checkpoints, name="trail_checkpoints"),
    path("audit/checkpoints/<uuid:checkpoint_id>/", trail.trail_checkpoint, name="trail_checkpoint"),
    path("audit/public-key/", trail.trail_key, name="trail_key"),
    path("audit/verifier/", trail.trail_verifier, name="trail_verifier"),
    path("audit/unusual-reads/", trail.trail_unusual, name="trail_unusual"),
    path("audit/permission-changes/", trail.trail_changes, name="trail_changes"),
    path("audit/permission-changes/csv/", trail.trail_changes_csv, name="trail_changes_csv"),
    path("audit/exports/", trail_keeping.trail_exports, name="trail_exports"),
    path("audit/exports/<uuid:export_id>/file/", trail_keeping.trail_export_file, name="trail_export_file"),
    path("audit/sinks/", trail_keeping.trail_sinks, name="trail_sinks"),
    path("audit/sinks/<uuid:sink_id>/retry/", trail_keeping.trail_sink_again, name="trail_sink_again"),
    path("audit/sinks/<uuid:sink_id>/remove/", trail_keeping.trail_sink_end, name="trail_sink_end"),
]
