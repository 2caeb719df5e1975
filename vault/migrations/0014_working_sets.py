"""Working sets with the counters of their predictors, and tokens that a model's server took from its cache."""

from django.db import migrations, models
from django.db.models.functions import Now

from governance.tables import tenant_key, tenant_model
from governance.tenancy_sql import ALL, run, tenant_table

PERSONA = {"persona_id": "governance_persona"}


class Migration(migrations.Migration):
    dependencies = [("vault", "0013_pipelines")]

    operations = [
        migrations.AddField("turn", "cached_tokens", models.PositiveIntegerField(default=0, db_default=0)),
        migrations.AddField(
            "modelendpoint", "cached_price", models.DecimalField(max_digits=10, decimal_places=4, null=True)
        ),
        migrations.AddField(
            "layersettings", "replacement", models.CharField(max_length=10, blank=True, default="", db_default="")
        ),
        migrations.AddIndex(
            "cube",
            models.Index(fields=["tenant", "persona"], name="cube_pinned", condition=models.Q(priority__gte=0.9)),
        ),
        tenant_model(
            "WorkingSet",
            {
                "constraints": [
                    models.UniqueConstraint(fields=["tenant", "stream"], name="working_set_is_one_for_stream")
                ],
                "indexes": [models.Index(fields=["tenant", "persona", "-made_at"], name="working_set_newest_first")],
            },
            persona=tenant_key("governance.persona"),
            stream=tenant_key("vault.stream"),
            position=models.PositiveIntegerField(),
            items=models.JSONField(default=list),
            made_at=models.DateTimeField(db_default=Now()),
        ),
        tenant_model(
            "PredictorCount",
            {
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant", "persona", "predictor"], name="predictor_is_counted_once_for_persona"
                    )
                ],
            },
            persona=tenant_key("governance.persona"),
            predictor=models.CharField(max_length=20, blank=True),
            preloaded=models.PositiveIntegerField(default=0, db_default=0),
            used=models.PositiveIntegerField(default=0, db_default=0),
        ),
        run(tenant_table("vault_workingset", ALL, PERSONA, {"stream_id": "vault_stream"})),
        run(tenant_table("vault_predictorcount", ALL, PERSONA)),
    ]
