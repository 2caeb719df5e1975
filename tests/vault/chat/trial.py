"""Everyday talk of one member in four dated sessions, against the real service without a model.

`pytest tests/vault/chat/trial.py` writes each reply and each stored statement to TRIAL_FILE, to be judged by reading:
docs/evidence/trial-of-the-chat.md has the judgements.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from governance.backdating import backdated
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

SESSIONS: list[tuple[str, list[str]]] = [
    (
        "2026-11-02T09:10:00+00:00",
        [
            "Hi there!",
            "I'm Nora, I just moved to Lisbon for a new job.",
            "I work as a nurse at the Santa Maria hospital.",
            "My sister Elena lives in Porto with her two kids.",
            "ok cool",
            "I'm allergic to shellfish, so no prawns for me.",
            "What do you know about me?",
            "Where do I work?",
            "Who is Elena?",
            "And where does she live?",
            "I ran ten kilometres along the river yesterday.",
            "When did I run?",
            "My dentist appointment is on 17 November at 3 pm.",
            "When is my dentist appointment?",
            "I want to save money for a trip to Japan.",
            "Am I allergic to peanuts?",
            "Am I allergic to shellfish?",
            "What's the capital of Mongolia?",
            "Remember that the wifi code of the flat is blue-otter-42.",
            "What's the wifi code?",
            "Thanks, that helps a lot!",
            "How many kids does Elena have?",
            "I took the job because the hospital is close to the sea.",
            "Why did I take the job?",
            "Good night!",
        ],
    ),
    (
        "2026-11-05T18:30:00+00:00",
        [
            "你好",
            "我今天买了一辆二手自行车，花了两百欧元。",
            "自行车多少钱？",
            "我不喜欢香菜。",
            "我喜欢吃什么不喜欢吃什么？",
            "我喜欢香菜吗？",
            "我的同事叫若昂，他教我葡萄牙语。",
            "谁教我葡萄牙语？",
            "我下周三要参加葡萄牙语考试。",
            "我什么时候考试？",
            "哈哈哈",
            "记住：我的房东电话是九一二三四五。",
            "房东的电话是多少？",
            "我昨天和若昂去了贝伦塔。",
            "我和若昂去了哪里？",
            "我为什么学葡萄牙语？",
            "我学葡萄牙语是因为要和病人说话。",
            "我为什么学葡萄牙语？",
            "我的猫叫小灰。",
            "我的狗叫什么名字？",
            "我的猫叫什么？",
            "谢谢你！",
            "你知道若昂的哪些事？",
        ],
    ),
    (
        "2026-11-12T20:05:00+00:00",
        [
            "Good evening :)",
            "Actually, the dentist appointment was moved to 24 November.",
            "When do I see the dentist?",
            "I failed the Portuguese exam yesterday, sadly.",
            "How did the exam go?",
            "Elena came to visit last weekend and brought pasteis de nata.",
            "What did Elena bring?",
            "When did Elena visit?",
            "I no longer work at Santa Maria, I moved to the clinic in Alfama.",
            "Where do I work now?",
            "can you help me with something?",
            "What did I say about my bike?",
            "How much did the bike cost?",
            "I'm thinking of going to Japan in April with my friend Tom.",
            "Who am I going to Japan with?",
            "When?",
            "I'd love an expensive leather jacket.",
            "Should I buy the jacket?",
            "Forget what I said about the wifi code.",
            "yes",
            "What's the wifi code?",
            "My favourite colour is dark green.",
            "What is my favourite colour?",
            "What is Tom's favourite colour?",
            "Did I pass the exam?",
            "lol ok",
        ],
    ),
    (
        "2026-11-23T08:00:00+00:00",
        [
            "morning!",
            "What happened last week?",
            "I found a wallet on the tram and gave it back to its owner.",
            "What did I find on the tram?",
            "Tom broke his leg, so the Japan trip is off.",
            "Is the Japan trip still on?",
            "Why is the trip off?",
            "What did we talk about on 5 November?",
            "我周末做了什么？",
            "我在阿尔法玛的诊所上班。",
            "我在哪里上班？",
            "Summarise what you know about Elena.",
            "Summarize what you know about Tom.",
            "I don't like coriander, right?",
            "我对什么过敏？",
            "My new phone number is 912 000 111.",
            "What is my phone number?",
            "忘掉我说过的关于房东的事。",
            "是",
            "房东的电话是多少？",
            "Do I have a cat?",
            "What is my cat called?",
            "I think it will rain.",
            "Which tower did I visit?",
            "What am I saving for?",
            "Have a nice day!",
        ],
    ),
]
FILE = Path(os.environ.get("TRIAL_FILE", "trial.json"))


def test_trial(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = []
    for begin, turns in SESSIONS:
        moment = datetime.fromisoformat(begin)

        class Now(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return moment.astimezone(tz or UTC)  # noqa: B023

        monkeypatch.setattr("vault.chat.services.datetime", Now)
        with backdated(moment):
            conversation = alice.post("conversations/", {}).json["id"]
            known = _statements(alice)
            for said in turns:
                reply = alice.post(f"conversations/{conversation}/turns/", {"content": said})
                run_jobs()
                found = _statements(alice)
                stored = [text for key, text in found.items() if key not in known]
                gone = [text for key, text in known.items() if key not in found]
                known = found
                answer = reply.json.get("content", reply.json)
                rows.append({"at": begin[:10], "said": said, "reply": answer, "stored": stored, "gone": gone})
    FILE.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert len(rows) >= 80


def _statements(alice: Contract) -> dict[str, str]:
    """The memories that the member has outside the chats: those that statements became."""
    rows, address = [], "memories/?page_size=200"
    while address:
        page = alice.get(address).json
        rows += page["results"]
        address = page["next"].split("/api/v1/")[-1] if page["next"] else ""
    return {one["id"]: f"[{one['semantic_type']}] {one['content']}" for one in rows if one["layer"] == "long_term"}
