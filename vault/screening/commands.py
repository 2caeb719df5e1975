"""Detection of texts that give orders to a language model: "ignore your instructions", a faked system role. Pure.

Patterns in English and Chinese find orders in plain words, not encoded or paraphrased ones. They are a second defence:
a prompt marks every memory as data anyway (vault/chat/rules.py).
"""

import re
import unicodedata

from governance.actor import Actor
from governance.vocabulary import PrincipalKind
from vault.vocabulary import Modality, Source

_UNTRUSTED_SOURCES = frozenset({Source.IMPORT, Source.PACK})
_OWN_SOURCES = frozenset({Source.CHAT, Source.SYSTEM})
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff]")
_BLANKS = re.compile(r"\s+")
_RULES = r"(?:instructions?|rules?|prompts?|guidelines?|directives?|guardrails?|safety (?:filters?|policies))"
_START = r"(?:^|[\s\"'{}\[\]#*>])"
_REST = r"[^\u3002\uff01\uff1f!?]"  # of a Chinese sentence
# (words, pattern): the pattern is tried only on texts with one of the words, which few texts have.
_ORDERS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (  # to set aside what the model was told
        ("ignore", "disregard", "override", "bypass", "forget"),
        re.compile(
            r"\b(?:ignore|disregard|override|bypass|forget) (?:\w+ ){0,4}?(?:previous|prior|above|earlier|preceding"
            rf"|your|system|existing|original) (?:\w+ ){{0,2}}?{_RULES}\b"
            rf"|\b(?:ignore|disregard|override|bypass) (?:all|any|every|these|those) (?:of )?(?:the )?(?:\w+ )?"
            rf"{_RULES}\b"
        ),
    ),
    (  # in a role that is not the writer's, or in the markup of one
        ("system", "developer", "im_start", "endoftext", "inst]", "sys>"),
        re.compile(
            rf"<\|?(?:im_start|system|endoftext)\b|\[/?inst\]|<</?sys>>|{_START}system (?:message|prompt|override) ?:"
            rf"|{_START}(?:system|developer) ?: ?(?:you |ignore|disregard|always |never |from now|do not |don't |answer"
            r"|reply|respond|delete|reveal|the assistant)"
        ),
    ),
    (  # to be somebody else
        ("you are", "you have"),
        re.compile(
            r"\byou are (?:now|no longer) (?:an? |the |in |my )?(?:\w+ ){0,2}?(?:assistant|ai|model|chatbot|mode|dan"
            r"|bot|bound|restricted|unrestricted|jailbroken)\b"
            r"|\b(?:pretend|act as if) (?:that )?you (?:are|have) (?:\w+ ){0,3}?(?:no|without|unrestricted|free)\b"
        ),
    ),
    (  # addressed to a reader that is a model
        ("instruction", "note", "message", "attention", "important"),
        re.compile(
            r"\b(?:instructions?|note|message|attention|important)(?: \w+)? (?:to|for) (?:the |any |all |every )?(?:ai"
            r"|llm|language|assistant|chatbot|agent)s?(?: \w+){0,3} ?:"
        ),
    ),
    (
        ("s this", "e this", "d this"),
        re.compile(
            r"\b(?:when|if) (?:you |an ai |the assistant |a model )(?:\w+ )?(?:summari[sz]e|read|process|retrieve|see)"
            r"s? this(?: \w+)?,? (?:\w+ )?(?:say|reply|answer|respond|tell|send|include|call|delete|run|execute|output"
            r"|recommend)\b"
        ),
    ),
    (  # to hide something from the user, or to disclose other people's data
        ("the user", "prompt", "your instructions", "your rules"),
        re.compile(
            r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this |it )?to|reveal (?:this |it )?to|alert|warn"
            r"|notify) the user\b"
            r"|\b(?:reveal|print|repeat|show|output|disclose|leak|send)(?: me| us)? (?:\w+ ){0,2}?"
            r"(?:system prompt|hidden prompt|initial prompt|your (?:instructions|prompt|rules))\b"
        ),
    ),
    (
        ("memor", "conversation", "chat history"),
        re.compile(
            r"\b(?:send|forward|post|upload|email|exfiltrate|leak) (?:\w+ ){0,2}?(?:memories|conversations?"
            r"|chat history) to\b|\b(?:delete|erase|wipe|purge) (?:all|every|everything|each)(?: of)?(?: the| your"
            r"| their| its)?(?: stored)? (?:memor(?:y|ies)|conversations?)\b"
        ),
    ),
    (  # the same in Chinese
        ("指", "规", "規", "提示", "要求", "设定", "限制", "命令", "约束", "说明", "助手", "模型"),
        re.compile(
            rf"(?:忽略|无视|無視|忘记|忘掉|不要理会|不用管|绕过|覆盖|推翻){_REST}{{0,10}}?(?:之前|以上|上面|上述|先前|前面|此前|所有"
            rf"|一切|你的?|任何|全部|系统){_REST}{{0,6}}?(?:指令|指示|规则|規則|提示词?|要求|设定|限制|命令|约束)"
            rf"|(?:从现在起|从现在开始|现在起|从今以后)[\uff0c,]?你(?:就是|是)?(?:一[个名位]|不再){_REST}{{0,12}}?(?:助手|模型"
            r"|ai|限制|约束|规则)"
            r"|(?:给|致|告)(?:所有|任何)?(?:ai|人工智能|语言模型|大模型|助手|智能体)的?(?:指令|指示|说明|命令|提示)"
            rf"|你(?:现在)?(?:不再是|不受|没有任何){_REST}{{0,8}}?(?:限制|约束|规则|助手)"
            rf"|(?:泄露|输出|打印|显示|重复|透露|说出){_REST}{{0,6}}?(?:系统提示词?|初始提示词?|你的(?:指令|提示词?|规则))"
        ),
    ),
    (
        ("系统", "开发者", "用户", "记忆", "对话", "聊天记录"),
        re.compile(
            r"(?:系统|开发者)(?:提示词?|消息|指令|命令)? ?[:\uff1a] ?"
            r"(?:你|请|忽略|从现在|必须|不要|立即|删除|回答|输出)"
            r"|(?:不要|别|不得|禁止|切勿)(?:告诉|提醒|告知|通知)用户"
            r"|(?:删除|清空|抹掉|清除)掉?(?:你的)?(?:所有|全部|一切)的?(?:记忆|对话)"
            rf"|[把将]{_REST}{{0,8}}?(?:记忆|对话|聊天记录)(?:都|全部)?(?:发送|转发|上传|发)[到给]"
        ),
    ),
)


def gives_orders(text: str) -> bool:
    """Return whether `text` matches a pattern of orders to a language model."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).casefold()).replace("\u2019", "'")
    plain = _BLANKS.sub(" ", plain)
    return any(order.search(plain) for words, order in _ORDERS if any(word in plain for word in words))


def is_untrusted(actor: Actor, source: Source, modality: Modality) -> bool:
    """Return whether a text comes from an API key, a tool call, an import or a pack instead of a signed-in person."""
    if source in _OWN_SOURCES:
        return False
    by_key = actor.principal_kind is PrincipalKind.API_KEY
    return by_key or source in _UNTRUSTED_SOURCES or modality is Modality.TOOL_CALL
