from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "vault"
    verbose_name = "MemVault"

    def ready(self) -> None:
        from governance.child_process import runs_jobs
        from governance.shared_files import share_files_by
        from vault.embeddings.halfvectors import bind_halfvectors
        from vault.grantables import declare_grantables
        from vault.providers.registry import find_shared_store

        if runs_jobs():
            from vault import handlers  # noqa: F401  each topic has its route from here on
        declare_grantables()
        share_files_by(find_shared_store)
        bind_halfvectors()
