"""The share of questions in a text. Pure; linear in the text's length."""

import re

# A sentence ends at a mark before a blank or a closing quotation mark, so not at the `?` in an address, and at the end
# of a line. Repeats are bounded, as a long row of marks would take quadratic time.
_END = re.compile(r"""[.!?؟…]{1,8}["'”’)\]]{0,3}(?=\s|$)|[。！？]{1,8}[”’」』）]{0,3}|\n|$""")
_MARKS = "?？؟"
_PARTICLES = ("吗", "嗎", "呢")
_MAY_ASK = re.compile(f"[{_MARKS}{''.join(_PARTICLES)}]")
_ABOUT_QUESTIONS = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|questions?|wonder(?:s|ed|ing)?|quer(?:y|ies)|inquir(?:e|es|ed|y|ies))\b"
    r"|[提追反疑][问問]|(?<![访訪顾顧慰学學请請])[问問](?:[了过過道起]|的是|什么|什麼)",
    re.IGNORECASE,
)


def asking_share(text: str) -> float:
    """Return the share, in 0..1, of the characters of `text` that are in questions, without the blanks around them."""
    if not _MAY_ASK.search(text):
        return 0.0
    asking = whole = begin = 0
    for end in _END.finditer(text):
        body, mark = text[begin : end.start()].strip(), end[0].strip()
        begin = end.end()
        length = len(body) + len(mark)
        whole += length
        if any(sign in mark for sign in _MARKS) or body.endswith(_PARTICLES):
            asking += length
    return asking / whole if whole else 0.0


def is_about_questions(question: str) -> bool:
    """Return whether the question may look for another question: `What did Ada ask?`"""
    return _ABOUT_QUESTIONS.search(question) is not None
