"""How much of a text asks something. Pure; linear in the text's length."""

import re

# A sentence ends with its mark where a blank or a quotation's end follows, so that an address's `?` ends none.
_SENTENCE = re.compile(r"""[^\s].*?(?:[.!?؟…]+["'”’)\]]*(?=\s|$)|[。！？]+[”’」』）]*|$)""", re.DOTALL)
_ASKS = re.compile(r"""[?？؟][.!?؟…。！？"'”’)\]」』）]*$|[吗嗎呢][。！…]*$""")
_ASKING = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|questions?|wonder(?:s|ed|ing)?|quer(?:y|ies)|inquir(?:e|es|ed|y|ies))\b|问|問|疑",
    re.IGNORECASE,
)


def asking_share(text: str) -> float:
    """The share, in 0..1, of the characters of `text` that stand in sentences which ask."""
    if not re.search("[?？؟吗嗎呢]", text):
        return 0.0
    sentences = _SENTENCE.findall(text)
    return sum(len(one) for one in sentences if _ASKS.search(one)) / max(1, sum(map(len, sentences)))


def is_about_questions(question: str) -> bool:
    """Whether what it looks for may be a question itself: `What did Ada ask?`"""
    return _ASKING.search(question) is not None
