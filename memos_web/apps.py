from django.apps import AppConfig


class MemosWebConfig(AppConfig):
    name = "memos_web"
    verbose_name = "MemOS Web"
