"""Everyday talk of one member in four dated sessions, against the real service without a model.

`TRIAL_FOLDER=. pytest tests/vault/chat/trial.py` writes each reply and each stored statement of a trial to a file, to
be judged by reading: docs/evidence/trial-of-the-chat.md has the judgements.
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

Sessions = list[tuple[str, list[str]]]
FIRST: Sessions = [
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
SECOND: Sessions = [
    (
        "2026-11-04T07:45:00+00:00",
        [
            "hey, good morning!",
            "My name is Priya and I run a small bakery in Leeds with my brother Arjun.",
            "we open at 6 every day except Mondays",
            "Ugh, the oven broke again yesterday, the repair guy comes on Friday at 8.",
            "When is the oven being repaired?",
            "Who runs the bakery with me?",
            "Which day are we closed?",
            "I'm thinking about hiring a second baker before Christmas because Arjun's back is hurting.",
            "Why do I want to hire somebody?",
            "nice",
            "My daughter Meera turned seven last Saturday, we had a pirate cake.",
            "How old is Meera?",
            "When was her birthday party?",
            "What kind of cake did we have?",
            "Can you write me a poem about bread?",
            "Our flour supplier is Hollins Mill, they raised the price to 19 pounds a sack.",
            "How much is a sack of flour now?",
            "Who delivers our flour?",
            "Do I have a son?",
            "I can't stand marzipan.",
            "do I like marzipan?",
            "What's my brother's favourite football club?",
            "please remember: the alarm code at the bakery is 4471",
            "alarm code?",
            "ok thx, bye for now",
        ],
    ),
    (
        "2026-11-09T12:20:00+00:00",
        [
            "中午好！",
            "我叫陈建国，退休前是中学物理老师，现在住在苏州。",
            "我退休前是做什么的？",
            "我老伴叫吴梅，她每天早上去公园打太极拳。",
            "吴梅早上做什么？",
            "我孙子小宇今年上小学一年级，特别喜欢恐龙。",
            "小宇喜欢什么？",
            "小宇上几年级了？",
            "嗯嗯，挺好的",
            "上周六我们一家去了杭州，看了西湖。",
            "我们什么时候去的杭州？",
            "我们在杭州看了什么？",
            "医生让我少吃盐，因为我的血压有点高。",
            "为什么我要少吃盐？",
            "我这个月15号要去医院复查。",
            "我哪天去复查？",
            "我血型是什么？",
            "帮我讲个笑话吧",
            "记一下，家里备用钥匙放在邻居老周那里。",
            "备用钥匙在哪儿？",
            "我打算明年春天学骑电动车。",
            "我不吃香菜也不吃羊肉。",
            "我能吃羊肉吗？",
            "你知道小宇的什么事？",
            "好的，谢谢，再见",
        ],
    ),
    (
        "2026-11-16T19:05:00+00:00",
        [
            "Evening. It's been a long day.",
            "We hired Tomasz, he starts on the first of December.",
            "When does Tomasz start?",
            "Who did we hire?",
            "The repair guy never showed up, so I bought a new oven for 2,400 pounds.",
            "What did the new oven cost?",
            "Did the repair guy come?",
            "Actually we now open at 7, not 6.",
            "What time do we open?",
            "Meera lost her first tooth this morning and was so proud.",
            "what happened to Meera this morning?",
            "Where is Arjun?",
            "Arjun is in Manchester until Thursday for his physiotherapy.",
            "Where is Arjun this week?",
            "How long is he staying there?",
            "I promised my mum to call her every Sunday.",
            "What did I promise my mother?",
            "What is my daughter called?",
            "I've decided to give up coffee, three cups a day is too much.",
            "How many cups of coffee did I drink a day?",
            "Should I order an espresso?",
            "What do you know about Arjun?",
            "Forget the alarm code please",
            "yes, do it",
            "what was the alarm code?",
            "haha perfect",
        ],
    ),
    (
        "2026-11-24T08:30:00+00:00",
        [
            "早上好呀",
            "小宇昨天在学校跑步比赛得了第二名，高兴坏了。",
            "小宇比赛得了第几名？",
            "复查结果出来了，血压正常了，医生说可以停药。",
            "我现在还需要吃药吗？",
            "其实备用钥匙已经拿回来了，现在放在鞋柜里。",
            "备用钥匙现在放在哪里？",
            "老周下个月搬去上海跟女儿住。",
            "老周要搬去哪里？",
            "他为什么搬？",
            "我上周做了什么？",
            "吴梅最近迷上了拍短视频，每天拍花。",
            "我老伴喜欢拍什么？",
            "我儿子叫什么名字？",
            "What did we talk about on 16 November?",
            "What have you got on my bakery?",
            "Is the old oven working?",
            "My accountant Sheila says we made a profit of 3 percent in October.",
            "what profit did we make in October?",
            "Who's Sheila?",
            "总结一下你知道的关于我的事",
            "忘掉关于老周的事情",
            "是的",
            "老周搬去哪里？",
            "今天天气真好",
            "See you later!",
        ],
    ),
]
TRIALS = {"first": FIRST, "second": SECOND}
FOLDER = Path(os.environ.get("TRIAL_FOLDER", "."))


@pytest.mark.parametrize("name", TRIALS)
def test_trial(alice: Contract, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rows: list[dict[str, Any]] = []
    for begin, turns in TRIALS[name]:
        moment = datetime.fromisoformat(begin)

        class Now(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return moment.astimezone(tz or UTC)  # noqa: B023

        monkeypatch.setattr("vault.chat.planning.datetime", Now)
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
    (FOLDER / f"trial-{name}.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert len(rows) >= 80


def _statements(alice: Contract) -> dict[str, str]:
    """The memories that the member has outside the chats: those that statements became."""
    rows, address = [], "memories/?page_size=200"
    while address:
        page = alice.get(address).json
        rows += page["results"]
        address = page["next"].split("/api/v1/")[-1] if page["next"] else ""
    return {one["id"]: f"[{one['semantic_type']}] {one['content']}" for one in rows if one["layer"] == "long_term"}
