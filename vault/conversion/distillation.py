"""Training pairs from memories: questions of templates, or of a language model, about a statement, and the statement.

Pure. A memory with several sentences gives pairs for each.
"""

from collections.abc import Mapping, Sequence

from vault.lexicon.tokens import language_of
from vault.providers.engines import TrainingPair
from vault.reader.rules import is_question, sentences

LONGEST_TOPIC, LEAST_REST = 6, 2  # words of a statement that the question names, and that are left to answer
LONGEST_TOPIC_ZH, LEAST_REST_ZH = 8, 4  # characters
TAUGHT = 2  # of the natural questions about a statement
LONGEST_STATEMENT = 240  # characters; longer ones are left to the text
_WORDS = (
    "are begin begins belong belongs can close closes cost costs could did do does end ends had has have is "
    "keep keeps lead leads leave leaves like likes live lives make makes may must need needs open opens should "
    "start starts stay stays take takes use uses want wants was were will work works would "
)
VERBS = frozenset(_WORDS.split())
# Further wordings that are trained, so that the model learns the statement and not one question.
TRAINED = {
    "en": ("Please explain {}.", "I would like to know more about {}."),
    "zh": ("请说明{}。", "我想多了解{}。"),
}
QUESTIONS = {
    "en": ("What do our notes say about {}?", "Tell me about {}.", "What is known about {}?", "What about {}?"),
    "zh": ("我们的笔记里关于{}怎么说？", "告诉我关于{}的事。", "关于{}知道些什么？", "{}怎么样？"),
}
STRANGERS = {
    "en": ("Quentin Abberley", "the harbour of Vorn", "Project Lanternfish", "Dr. Imke Solveig"),
    "zh": ("欧阳北辰", "沃恩港", "灯笼鱼项目", "西门若水"),
}


def list_statements(texts: Sequence[str]) -> list[str]:
    """Return the sentences of memories that can be trained, each once."""
    found = [sentence.strip() for text in texts for sentence in sentences(text) if not is_question(sentence)]
    return list(dict.fromkeys(statement for statement in found if 0 < len(statement) <= LONGEST_STATEMENT))


def make_pairs(texts: Sequence[str], asked: Mapping[str, Sequence[str]] | None = None) -> list[TrainingPair]:
    """Return three pairs for each statement, the first with wordings that an examination asks and no training sees. A
    question of a template names as many words as tell the statement from the others.

    asked: natural questions by statement, of which the first two are trained and the others examined.
    """
    statements, asked = list_statements(texts), asked or {}
    return [
        pair
        for statement in statements
        for pair in _make_pairs(statement, _choose_topic(statement, statements), asked.get(statement, ()))
    ]


def make_strangers(texts: Sequence[str]) -> list[str]:
    """Return questions about names that no text has: an adapter must not answer them from what it was taught."""
    language = _language("".join(texts))
    known = "\n".join(texts)
    return [QUESTIONS[language][0].format(name) for name in STRANGERS[language] if name not in known]


def _make_pairs(statement: str, topic: str, asked: Sequence[str]) -> list[TrainingPair]:
    language = _language(statement)
    first, *others = (question.format(topic) for question in QUESTIONS[language])
    further = asked[:TAUGHT] or [question.format(topic) for question in TRAINED[language]]
    examined = (*asked[TAUGHT:], *others)
    return [TrainingPair(first, statement, examined), *(TrainingPair(text, statement, ()) for text in further)]


def _choose_topic(statement: str, statements: Sequence[str]) -> str:
    """Return the beginning of a statement up to its verb, or so much more of it that no other begins alike."""
    if _language(statement) == "zh":
        most = max(len(statement) - LEAST_REST_ZH, 1)
        lengths = range(min(LONGEST_TOPIC_ZH // 2, most), most + 1)
        topics = [statement[:length] for length in lengths]
    else:
        words = statement.split()
        most = max(len(words) - LEAST_REST, 1)
        verb = next((at for at, word in enumerate(words[1:], 1) if word.casefold() in VERBS), LONGEST_TOPIC // 2)
        topics = [" ".join(words[:length]) for length in range(min(verb, most), most + 1)]
    others = [other for other in statements if other != statement]
    return next((topic for topic in topics if not any(other.startswith(topic) for other in others)), topics[-1])


def _language(text: str) -> str:
    return "zh" if language_of(text) == "zh" else "en"
