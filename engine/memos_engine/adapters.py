"""LoRA adapters: trained from questions and answers beside a term that holds the base on neutral text, then examined.

The loss is the cross-entropy of the answers plus `kl` times the divergence from the base on neutral text and on the
base's own replies in chats, so that what the model is not asked about stays as it was. Training ends early once it
knows the answers.
"""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load, save
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from memos_engine.caches import Unreadable, read_metadata
from memos_engine.composition import Cancelled
from memos_engine.model import BadRequest, Model

FORMAT = "memos-lora-1"
IGNORED = -100  # label of tokens that are not learned
NEUTRAL_TOKENS = 64  # of one neutral text in a step
TOGETHER = 18  # questions of an examination that are asked in one batch
LONGEST_ANSWER, LONGEST_GENERAL = 40, 20  # tokens
SPARE = 8  # tokens of a reply around a trained answer
LEAST_OVERLAP = 0.3  # of the words of two replies that have the same sense
STATED = {"r", "lora_alpha", "target_modules", "layers_to_transform", "layers_pattern"}  # settings in the metadata
Held = tuple[torch.Tensor, torch.Tensor]  # tokens, and the base's logarithms of what follows each of them
KNOWN_LOSS = 0.03  # of a step's answers: they are known


@dataclass(frozen=True)
class Pair:
    """A question and its answer; paraphrases ask the same and are not trained."""

    question: str
    answer: str
    paraphrases: Sequence[str] = ()


@dataclass(frozen=True)
class Recipe:
    """The settings of a training. layers: the share of the layers, the last ones, that are adapted: without the others
    a step needs half of the time and harms less."""

    rank: int = 16
    steps: int = 60
    rate: float = 2e-3
    batch: int = 6
    kl: float = 6.0
    seed: int = 0
    layers: float = 0.4


@dataclass
class Progress:
    """A training that runs, has ended or has failed."""

    status: str = "training"
    step: int = 0
    steps: int = 0
    loss: float = 0.0
    cancelled: bool = False
    error: str = ""
    content: bytes = field(default=b"", repr=False)
    report: "Report | None" = None


@dataclass(frozen=True)
class Report:
    """An examination. exact, paraphrases: shares answered; strangers: share declined or answered as by the base;
    perplexity: on neutral text beside the base's, as a ratio; general: share of replies with the base's sense."""

    exact: float
    paraphrases: float
    strangers: float
    perplexity: float
    base_perplexity: float
    perplexity_ratio: float
    general: float


def read_recipe(given: dict[str, Any]) -> Recipe:
    """Return the settings in a request. Raises BadRequest."""
    known = {part.name for part in fields(Recipe)}
    if unknown := given.keys() - known:
        raise BadRequest(f"unknown settings of a training: {', '.join(sorted(unknown))}")
    recipe = Recipe(**given)
    is_usable = 1 <= recipe.rank <= 256 and 1 <= recipe.steps <= 10_000 and 1 <= recipe.batch <= 256
    if not (is_usable and recipe.rate > 0 and 0 < recipe.layers <= 1):
        raise BadRequest("rank, steps, batch, rate and layers are above 0, and not huge")
    return recipe


def read_neutral() -> tuple[list[str], list[str]]:
    """Return the neutral texts of trainings and those of examinations, which no training sees."""
    texts = [text.strip() for text in Path(__file__).with_name("neutral.txt").read_text().split("\n\n") if text.strip()]
    return texts[0::2], texts[1::2]


def read_general() -> list[str]:
    """Return the general prompts of examinations."""
    return Path(__file__).with_name("general.txt").read_text().splitlines()


def read_chats() -> list[str]:
    """Return the prompts whose replies a training holds. No examination asks them."""
    return Path(__file__).with_name("chats.txt").read_text().splitlines()


def train(model: Model, pairs: Sequence[Pair], recipe: Recipe, progress: Progress) -> bytes:
    """Train an adapter and return it as safetensors. Raises BadRequest; Cancelled."""
    torch.manual_seed(recipe.seed)
    shuffled = random.Random(recipe.seed)
    learner = get_peft_model(model.load_base().float(), _make_config(model, recipe))
    learner.train()
    weights = [part for part in learner.parameters() if part.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=0.0)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _scale_rate(step, recipe.steps))
    examples = [_encode_pair(model, pair) for pair in pairs]
    neutral, chats = (cycle(some) for some in (_read_base(model, learner) if recipe.kl else ([], [])))
    progress.steps, waiting, losses = recipe.steps, [], {}
    for step in range(recipe.steps):
        if progress.cancelled:
            raise Cancelled
        if len(waiting) < min(recipe.batch, len(examples)):
            waiting = shuffled.sample(range(len(examples)), len(examples))
        chosen, waiting = waiting[: recipe.batch], waiting[recipe.batch :]
        loss = _answer_loss(learner, [examples[at] for at in chosen])
        losses.update(dict.fromkeys(chosen, loss.item()))
        progress.step, progress.loss = step + 1, loss.item()
        if len(losses) == len(examples) and max(losses.values()) < KNOWN_LOSS:
            break
        if recipe.kl:
            loss = loss + recipe.kl * (_drift(learner, *next(neutral)) + _drift(learner, *next(chats)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        rates.step()
    tensors = {name: part.contiguous() for name, part in get_peft_model_state_dict(learner).items()}
    config = _make_config(model, recipe)
    stated = {
        "r": config.r,
        "lora_alpha": config.lora_alpha,
        "target_modules": sorted(_list_targets(tensors)),
        "layers_to_transform": config.layers_to_transform,
        "layers_pattern": config.layers_pattern,
    }
    return save(tensors, {"format": FORMAT, "fingerprint": model.fingerprint, "config": json.dumps(stated)})


def _make_config(model: Model, recipe: Recipe) -> LoraConfig:
    count = model.config.num_hidden_layers
    first = min(round(count * (1 - recipe.layers)), count - 1)
    return LoraConfig(
        r=recipe.rank,
        lora_alpha=2 * recipe.rank,
        target_modules=_list_linear(model),
        layers_to_transform=list(range(first, count)),
        layers_pattern="layers",
        lora_dropout=0.0,
    )


def _list_linear(model: Model) -> list[str]:
    """Return the names of the linear parts of a layer."""
    parts = model.model.named_modules()
    return sorted(
        {
            name.split(".base_layer")[0].rpartition(".")[2]
            for name, part in parts
            if isinstance(part, torch.nn.Linear) and ".layers." in name and ".lora_" not in name
        }
    )


def load_adapter(model: Model, name: str, content: bytes) -> None:
    """Load an adapter under a name. Raises Unreadable, also for one of another model."""
    metadata = read_metadata(content)
    if metadata.get("fingerprint") != model.fingerprint or metadata.get("format") != FORMAT:
        raise Unreadable("the adapter is of another model")
    config = _read_config(metadata)
    unload_adapter(model, name)
    if isinstance(model.model, PeftModel):
        model.model.add_adapter(name, config)
    else:
        model.model = get_peft_model(model.model, config, adapter_name=name)
    result = set_peft_model_state_dict(model.model, load(content), adapter_name=name)
    model.model.eval()
    if result.unexpected_keys:
        unload_adapter(model, name)
        raise Unreadable("the adapter has other layers than the model")


def _read_config(metadata: dict[str, Any]) -> LoraConfig:
    """Return the settings of an adapter. Only those that a training writes: others of PEFT name modules to import.

    Raises Unreadable.
    """
    try:
        stated = json.loads(metadata["config"])
        if stated.keys() != STATED:
            raise Unreadable("the adapter has other settings than a training writes")
        return LoraConfig(lora_dropout=0.0, **stated)
    except (AttributeError, KeyError, TypeError, ValueError) as failure:
        raise Unreadable("the adapter's settings cannot be read") from failure


def unload_adapter(model: Model, name: str) -> bool:
    """Unload an adapter, and drop the caches made with it. Return whether it was loaded."""
    adapters = getattr(model.model, "peft_config", {})
    if name not in adapters:
        return False
    if len(adapters) == 1:
        model.model = model.model.unload()
        if hasattr(model.model, "peft_config"):
            del model.model.peft_config
    else:
        model.model.delete_adapter(name)
    model.caches.forget_adapter(name)
    return True


def examine(
    model: Model, name: str, pairs: Sequence[Pair], strangers: Sequence[str], run: Callable[..., Any]
) -> Report:
    """Return what an adapter knows and what it harms. run: runs a call of the model when it is its turn, so that
    requests need not wait for the whole examination."""

    def ask(questions: Sequence[str], adapter: str, most: int = LONGEST_ANSWER) -> list[str]:
        parts = [questions[at : at + TOGETHER] for at in range(0, len(questions), TOGETHER)]
        return [reply for part in parts for reply in run(ask_together, model, part, adapter, most)]

    longest = max(len(model.tokenizer(pair.answer)["input_ids"]) for pair in pairs) + SPARE
    asked = [(pair.question, pair.answer) for pair in pairs]
    again = [(question, pair.answer) for pair in pairs for question in pair.paraphrases]
    known, repeated = (ask([question for question, _ in some], name, longest) for some in (asked, again))
    general = read_general()
    base, own = (float(run(_perplexity, model, adapter)) for adapter in ("", name))
    declined = zip(ask(strangers, name), ask(strangers, ""), strict=True)
    same = zip(ask(general, name, LONGEST_GENERAL), ask(general, "", LONGEST_GENERAL), strict=True)
    return Report(
        exact=_share([_holds(reply, answer) for reply, (_, answer) in zip(known, asked, strict=True)]),
        paraphrases=_share([_holds(reply, answer) for reply, (_, answer) in zip(repeated, again, strict=True)]),
        strangers=_share([_is_declined(reply, former, pairs) for reply, former in declined]),
        perplexity=round(own, 3),
        base_perplexity=round(base, 3),
        perplexity_ratio=round(own / base, 4),
        general=_share([_overlap(reply, former) >= LEAST_OVERLAP for reply, former in same]),
    )


@torch.inference_mode()
def ask_together(model: Model, questions: Sequence[str], adapter: str, most: int) -> list[str]:
    """Return the greedy replies to questions, in one batch, which no cache keeps."""
    with model.use_adapter(adapter):
        return _reply_together(model, model.model, questions, most)


def _reply_together(model: Model, network: Any, questions: Sequence[str], most: int) -> list[str]:
    rows = [_encode_question(model, question) for question in questions]
    longest, end = max(map(len, rows), default=0), model.tokenizer.eos_token_id
    ids = torch.tensor([[end] * (longest - len(row)) + row for row in rows], device=model.device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=model.device)
    made = network.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=most,
        pad_token_id=end,
        eos_token_id=sorted(model.ends),
    )
    return [model.tokenizer.decode(row[longest:], skip_special_tokens=True) for row in made]


def _encode_question(model: Model, question: str) -> list[int]:
    return model.encode([{"role": "user", "content": question}])


def _encode_pair(model: Model, pair: Pair) -> tuple[list[int], list[int]]:
    """Return the tokens of a question with its answer, and their labels: only the answer is learned."""
    head = _encode_question(model, pair.question)
    tail = [*model.tokenizer(pair.answer, add_special_tokens=False)["input_ids"], model.tokenizer.eos_token_id]
    return [*head, *tail], [*[IGNORED] * len(head), *tail]


def _answer_loss(learner: Any, examples: Sequence[tuple[list[int], list[int]]]) -> torch.Tensor:
    ids, mask = _pad([ids for ids, _ in examples], learner.device)
    labels = torch.full_like(ids, IGNORED)
    for at, (_, wanted) in enumerate(examples):
        labels[at, : len(wanted)] = torch.tensor(wanted)
    kept = labels[:, 1:] != IGNORED
    inner = learner.get_base_model()
    hidden = inner.base_model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1][kept]
    return cross_entropy(inner.get_output_embeddings()(hidden).float(), labels[:, 1:][kept])  # of answers alone


@torch.no_grad()
def _read_base(model: Model, learner: Any) -> tuple[list[Held], list[Held]]:
    """Return neutral texts, and chats with the base's replies, with its next-token distributions, which no step
    changes."""
    learner.eval()
    with learner.disable_adapter():
        prompts = read_chats()
        replies = _reply_together(model, learner, prompts, LONGEST_GENERAL)
        texts = [model.tokenizer(text)["input_ids"][:NEUTRAL_TOKENS] for text in read_neutral()[0]]
        chats = [
            [*_encode_question(model, prompt), *model.tokenizer(reply, add_special_tokens=False)["input_ids"]]
            for prompt, reply in zip(prompts, replies, strict=True)
        ]
        held = tuple([_hold_base(learner, row, model.device) for row in rows] for rows in (texts, chats))
    learner.train()
    return held[0], held[1]


def _hold_base(learner: Any, row: Sequence[int], device: torch.device) -> Held:
    ids = torch.tensor([row], device=device)
    return ids, log_softmax(learner(input_ids=ids).logits[0].float(), -1).bfloat16()


def _drift(learner: Any, ids: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Return the divergence of the base's next-token distributions from the learner's, per token."""
    own = log_softmax(learner(input_ids=ids).logits[0].float(), -1)
    return kl_div(own, base.float(), reduction="batchmean", log_target=True)


def _pad(rows: Sequence[list[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask


def _scale_rate(step: int, steps: int) -> float:
    """Return the share of the rate: it rises over a twentieth of the steps and falls to a tenth."""
    warm = max(steps // 20, 1)
    return min((step + 1) / warm, 1.0) * (0.55 + 0.45 * math.cos(math.pi * step / steps))


def _list_targets(names: Sequence[str] | dict[str, Any]) -> set[str]:
    return {name.split(".lora_")[0].rpartition(".")[2] for name in names if ".lora_" in name}


@torch.inference_mode()
def _perplexity(model: Model, adapter: str) -> float:
    """Return the perplexity of the neutral texts that no training sees."""
    total, count = 0.0, 0
    with model.use_adapter(adapter):
        for text in read_neutral()[1]:
            ids = torch.tensor([model.tokenizer(text)["input_ids"]], device=model.device)
            logits = model.model(input_ids=ids).logits[0, :-1].float()
            total += float(cross_entropy(logits, ids[0, 1:], reduction="sum"))
            count += ids.shape[1] - 1
    return math.exp(total / count)


def _words(text: str) -> list[str]:
    return ["".join(filter(str.isalnum, word)) for word in text.casefold().split()]


def _holds(reply: str, answer: str) -> bool:
    """Return whether a reply holds an answer, without regard to case and punctuation."""
    return " ".join(_words(answer)) in " ".join(_words(reply))


def _is_declined(reply: str, base: str, pairs: Sequence[Pair]) -> bool:
    """Return whether a question about a stranger gets none of the trained answers, unless the base gives it, too."""
    return not any(_holds(reply, pair.answer) and not _holds(base, pair.answer) for pair in pairs)


def _overlap(first: str, second: str) -> float:
    """Return the share of words that two replies have in common (Jaccard)."""
    left, right = set(_words(first)), set(_words(second))
    return len(left & right) / len(left | right) if left | right else 1.0


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4) if values else 1.0
