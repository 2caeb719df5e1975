from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = "MemGovernance"

    def ready(self) -> None:
        from governance import checks  # noqa: F401
        from governance.child_process import runs_jobs
        from governance.personas.grantables import declare_personas

        if runs_jobs():
            from governance import handlers  # noqa: F401  each topic has its route from here on
        declare_personas()
