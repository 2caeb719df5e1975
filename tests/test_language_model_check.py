"""`doctor` asks the server of the language model for its models, and says what is wrong with its answer."""

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer

from memos_web.config import LlmChoice
from memos_web.management.checks import Failed, language_model


@pytest.mark.parametrize(
    ("status", "reason"),
    [(200, ""), (404, ""), (302, ""), (401, "refuses MEMOS_LLM_KEY"), (403, "refuses"), (503, "answers 503")],
)
def test_status_of_the_models_server_decides(httpserver: HTTPServer, status: int, reason: str) -> None:
    httpserver.expect_request("/v1/models").respond_with_data(b"{}", status=status)
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        if reason:
            with pytest.raises(Failed, match=reason):
                language_model()
        else:
            assert language_model().startswith("tiny at http")


def test_unreachable_server_fails_the_check() -> None:
    with (
        override_settings(MEMOS_LLM=LlmChoice(url="http://127.0.0.1:9/v1", key="k", model="tiny")),
        pytest.raises(Failed, match="cannot be reached"),
    ):
        language_model()
