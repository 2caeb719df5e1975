from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = "MemGovernance"

    def ready(self) -> None:
        from governance import checks, handlers  # noqa: F401  each topic has its route from here on
        from governance.personas.grantables import declare_personas

        declare_personas()
