"""Reranking by a server that has `POST /rerank` beside OpenAI's protocol, as Jina, vLLM and others serve it."""

from collections.abc import Sequence
from typing import Any

from vault.providers.openai_endpoint import Endpoint
from vault.providers.reranker import check_scores


class EndpointReranker:
    """Sends `{model, query, documents, top_n}`, reads `{results: [{index, relevance_score}]}`; scores in 0..1."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = f"openai/{endpoint.model}"
        self._endpoint = endpoint
        self._client = endpoint.client()

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        body = {"model": self._endpoint.model, "query": question, "documents": list(texts), "top_n": len(texts)}
        with self._endpoint.translate_failures():
            answer: Any = self._client.post("/rerank", cast_to=object, body=body)
        return check_scores(self._read_scores(answer, len(texts)), len(texts), f"The model {self._endpoint.place}")

    def _read_scores(self, answer: Any, expected: int) -> list[float]:
        """The scores in the order of the texts. The client does not check the server's JSON: all of it is doubted."""
        try:
            found = {int(row["index"]): float(row["relevance_score"]) for row in answer["results"]}
        except (KeyError, OverflowError, TypeError, ValueError):
            raise self._endpoint.unreadable() from None
        if sorted(found) != list(range(expected)):
            raise self._endpoint.unavailable("did not send one score per text")
        return [found[index] for index in range(expected)]
