from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = "MemGovernance"

    def ready(self) -> None:
        from governance.personas.grantables import declare_personas

        declare_personas()
