"""The fixed sentences of answers without a language model, besides the quotes."""

PHRASES = {
    "en": {
        "quoted": "From your memories:",
        "yes": "Yes. From your memories:",
        "no": "No. From your memories:",
        "goal": "You have a goal that this touches:",
        "summary": "This is what your memories hold:",
        "nothing_about": "Nothing in your memories is about this.",
        "forget": "These memories would be forgotten. Say yes, or press Forget, to delete them:",
        "forget_none": "No memory of yours is about this, so there is nothing to forget.",
        "forgotten": "Forgotten. Deleted memories can be restored for some days.",
        "no_model": "The language model gave no answer. This reply was made without it.",
        "nearest": "These come closest, and do not answer it:",
        "nothing": "Nothing in your memories answers this.",
        "noted": "Noted. I will remember this.",
        "greeting": "Hello. Ask me something, or tell me something to remember.",
        "farewell": "Goodbye. I am here when you need me.",
        "thanks": "You are welcome.",
        "not_noted": "I stored nothing: this states nothing to remember. Ask a question or tell me a fact.",
    },
    "zh": {
        "quoted": "你的记忆里写着：",
        "yes": "是的。你的记忆里写着：",
        "no": "不是。你的记忆里写着：",
        "goal": "这和你的一个目标有关：",
        "summary": "你的记忆里有这些：",
        "nothing_about": "你的记忆里没有关于这个的内容。",
        "forget": "下面这些记忆将被忘掉。回答“是”或按“忘掉”即可删除：",
        "forget_none": "你的记忆里没有关于这个的内容，没有可忘掉的。",
        "forgotten": "已忘掉。删除的记忆在几天内可以恢复。",
        "no_model": "语言模型没有回答，这个回答没有用到它。",
        "nearest": "最接近的是这些，但没有回答这个问题：",
        "nothing": "你的记忆里没有这方面的内容。",
        "noted": "记下了，我会记住这件事。",
        "greeting": "你好。你可以问我，也可以告诉我要记住的事。",
        "farewell": "再见，需要时随时找我。",
        "thanks": "不客气。",
        "not_noted": "这句话里没有需要记住的内容，所以没有保存。你可以提问，或告诉我一件事。",
    },
}
GROUPS = {
    "en": {"profile": "Profile:", "fact": "Facts:", "preference": "Preferences:", "goal": "Goals:", "event": "Events:"},
    "zh": {"profile": "基本情况：", "fact": "事实：", "preference": "喜好：", "goal": "目标：", "event": "经历："},
}
_STOCK = frozenset(line for phrases in (*PHRASES.values(), *GROUPS.values()) for line in phrases.values())


def own_words(text: str) -> str:
    """Return the lines of an answer that are neither one of PHRASES, nor one of GROUPS, nor the marker of a quote."""
    return "\n".join(line for line in text.splitlines() if line not in _STOCK and not _is_marker(line))


def _is_marker(line: str) -> bool:
    return line.startswith("[") and line.endswith("]") and line[1:-1].isdecimal()
