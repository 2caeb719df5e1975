from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "vault"
    verbose_name = "MemVault"

    def ready(self) -> None:
        from vault import handlers  # noqa: F401  each topic has its route from here on
        from vault.embeddings.halfvectors import bind_halfvectors
        from vault.grantables import declare_grantables

        declare_grantables()
        bind_halfvectors()
