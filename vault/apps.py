from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "vault"
    verbose_name = "MemVault"

    def ready(self) -> None:
        from vault.cubes.halfvectors import bind_halfvectors
        from vault.grantables import declare_grantables

        declare_grantables()
        bind_halfvectors()
