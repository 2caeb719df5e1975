"""The fixed sentences of answers without a language model, besides the quotes."""

PHRASES = {
    "en": {
        "quoted": "From your memories:",
        "yes": "Yes. From your memories:",
        "no": "No. From your memories:",
        "goal": "You have a goal that this touches:",
        "summary": "This is what your memories hold:",
        "nothing_about": "Nothing in your memories is about this.",
        "delete": "These memories would be forgotten. Say yes, or press Forget, to delete them:",
        "delete_none": "No memory of yours is about this, so there is nothing to forget.",
        "archive": "These memories would be archived. Say yes, or press Archive:",
        "restore": "These archived memories would be active again. Say yes, or press Restore:",
        "restore_none": "No archived memory is about this. Deleted and expired ones are under Memories, Not active.",
        "tag": "These memories would get the tag. Say yes, or press Tag:",
        "tag_nothing": "Say which tag these memories should get, as in: tag my notes about … as …",
        "freeze": "A freeze needs a reason, which the chat does not ask for. Open these and press Freeze:",
        "unfreeze": "The chat ends no freeze. Open these: each shows its freeze, and who may end it:",
        "promote": "The chat changes no layers. Open these and choose Layer:",
        "fuse": "The chat fuses no memories. Select these under Memories and choose Fuse:",
        "rollback": "The chat brings back no versions. Open these: each has a timeline with Roll back:",
        "audit": "The page of each of these names who read it and what was changed:",
        "update": "Tell me how it is now, in a sentence, and it replaces what I have. This is what I have:",
        "unnamed": "Nothing was done: say which memories, as in: archive my notes about the boiler. What a turn stored "
        "has Undo below its answer.",
        "operation_none": "No memory of yours is about this, so nothing was done.",
        "operation_done": "Done.",
        "operation_partly": "Done for some. The others may not be changed, or are as you want them already.",
        "operation_failed": "Nothing was changed: these may not be changed, or are as you want them already.",
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
        "delete": "下面这些记忆将被忘掉。回答“是”或按“忘掉”即可删除：",
        "delete_none": "你的记忆里没有关于这个的内容，没有可忘掉的。",
        "archive": "下面这些记忆将被归档。回答“是”或按“归档”：",
        "restore": "下面这些已归档的记忆将重新启用。回答“是”或按“恢复”：",
        "restore_none": "没有关于这个的已归档记忆。已删除和已过期的在“记忆”页的“未启用”里。",
        "tag": "下面这些记忆将加上标签。回答“是”或按“加标签”：",
        "tag_nothing": "请说明要加的标签，例如：给关于……的记忆打上标签……",
        "freeze": "冻结需要理由，聊天里不询问理由。请打开这些记忆并按“冻结”：",
        "unfreeze": "聊天里不解除冻结。请打开这些记忆：每条都写着它的冻结和谁可以解除：",
        "promote": "聊天里不更改层级。请打开这些记忆并选择“层级”：",
        "fuse": "聊天里不融合记忆。请在“记忆”页选中这些并选择“融合”：",
        "rollback": "聊天里不恢复旧版本。请打开这些记忆，时间线上有每个版本和“回滚”：",
        "audit": "每条记忆的页面上写着谁读过它、改过什么：",
        "update": "请用一句话告诉我现在的情况，它会替换我记住的内容。我记住的是：",
        "unnamed": "什么也没有做：请说明是哪些记忆，例如：归档关于锅炉的记忆。刚保存的内容在回答下面有“撤销”。",
        "operation_none": "你的记忆里没有关于这个的内容，什么也没有做。",
        "operation_done": "完成。",
        "operation_partly": "部分完成。其余的不能更改，或者已经是这样了。",
        "operation_failed": "没有更改：这些记忆不能更改，或者已经是这样了。",
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
    """Return the lines of an answer that are neither one of PHRASES, nor one of GROUPS, nor stand for something."""
    return "\n".join(line for line in text.splitlines() if line not in _STOCK and not _is_marker(line))


def _is_marker(line: str) -> bool:
    return line.startswith("[") and line.endswith("]") and (line[1:-1].isdecimal() or line.startswith("[="))
