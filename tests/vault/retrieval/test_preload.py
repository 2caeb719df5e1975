"""A web process loads what searches need as soon as it serves."""

import os
import subprocess
import sys

from tests.harness.servers import ROOT, clean_environ

FIRST_SEARCH = """
import django; django.setup()
import time
from vault.lexicon.temporal_expressions import asks_for_time
from vault.lexicon.tokens import content_terms
from vault.providers.registry import embedder
from vault.retrieval.preload import load_models
load_models()
start = time.process_time()
question = "Where does Anna live now? \u5b89\u5a1c\u4f4f\u5728\u54ea\u91cc\uff1f"
embedder().embed([question]), content_terms(question), asks_for_time(question)
print(time.process_time() - start)
"""


def test_first_question_after_preload_is_quick() -> None:
    """0.2 s of processor time is a hundred times what it takes then, and a fifth of what it took before."""
    environ = clean_environ() | {"DJANGO_SETTINGS_MODULE": "memos_web.settings.embedded", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SEARCH], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 0.2
