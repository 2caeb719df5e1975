"""Adapters on vLLM: its calls for LoRA adapters, with the statuses, texts and error bodies of vLLM's own source.

Recorded from vllm-project/vllm: `vllm/entrypoints/openai/models/serving.py` at commit 00153c8b79 (load, unload, list of
models, unknown models), `vllm/entrypoints/serve/utils/error_response.py` at 1c6ebf2c6b (the body of an error),
`vllm/exceptions.py` (`LoRAAdapterNotFoundError`), and `tests/entrypoints/openai/test_lora_adapters.py` at 0091c9502f
(404 for a folder without an adapter, 400 for settings that it does not take). Without VLLM_ALLOW_RUNTIME_LORA_UPDATING
the calls are not routed, and FastAPI answers 404.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.database import acting
from memos_web.config import LlmChoice
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.forms.stored import form_add
from tests.vault.forms.test_caches import ask
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs
from vault.models import MemoryForm
from vault.providers.engines import VllmEngine
from vault.providers.openai_endpoint import Endpoint
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import engine
from vault.vocabulary import MemoryType

CONFIG = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj"]}


def make_adapter() -> bytes:
    """Return safetensors with one tensor."""
    header = {
        "__metadata__": {"format": "memos-lora-1", "fingerprint": "f" * 64, "config": json.dumps(CONFIG)},
        "base_model.model.q_proj.lora_A.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    encoded = json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + bytes(4)


@dataclass
class Vllm:
    """A server with the recorded answers. adapters: the folder of each; read: what it found there at each load.
    largest: rank that it takes; held: adapters that it holds in memory, of which others are read again at their use."""

    base: EngineTwin
    adapters: dict[str, Path] = field(default_factory=dict)
    read: list[dict[str, Any]] = field(default_factory=list)
    largest: int = 64
    held: set[str] = field(default_factory=set)
    is_updatable: bool = True
    cannot_remove: bool = False
    chat_without_adapters: bool = False  # as between a restart and the next list of models

    def serve(self, server: HTTPServer) -> None:
        server.expect_request("/v1/models").respond_with_handler(self.models)
        server.expect_request("/v1/load_lora_adapter", "POST").respond_with_handler(self.load)
        server.expect_request("/v1/unload_lora_adapter", "POST").respond_with_handler(self.unload)
        server.expect_request("/v1/chat/completions").respond_with_handler(self.chat)

    def models(self, _: Request) -> Response:
        common = {"object": "model", "created": 1_764_000_000, "owned_by": "vllm", "permission": []}
        data = [{**common, "id": "tiny", "root": "tiny", "parent": None, "max_model_len": 4096}]
        data += [
            {**common, "id": name, "root": str(place), "parent": "tiny", "max_model_len": None}
            for name, place in self.adapters.items()
        ]
        return Response(json.dumps({"object": "list", "data": data}), mimetype="application/json")

    def load(self, request: Request) -> Response:
        if not self.is_updatable:
            return Response('{"detail":"Not Found"}', 404, mimetype="application/json")
        body = request.get_json()
        name, path = body.get("lora_name"), body.get("lora_path")
        if not name or not path:
            return refuse(400, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be provided.")
        if name in self.adapters:
            told = f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, set "
            return refuse(400, "InvalidUserInput", f"{told}'load_inplace' to True.")
        place = Path(path)
        if not (place / "adapter_config.json").exists():
            told = f"Loading lora {name} failed: No adapter found for {path}"
            return refuse(404, "NotFoundError", told)
        config = json.loads((place / "adapter_config.json").read_text())
        if config["r"] > self.largest:
            told = f"LoRA rank {config['r']} is greater than max_lora_rank {self.largest}."
            return refuse(400, "BadRequestError", told)
        self.read.append({"config": config, "weights": (place / "adapter_model.safetensors").read_bytes()})
        self.adapters[name] = place
        self.held = {name}  # as with --max-loras 1, which is its default
        return Response(f"Success: LoRA adapter '{name}' added successfully.")

    def unload(self, request: Request) -> Response:
        if not self.is_updatable:
            return Response('{"detail":"Not Found"}', 404, mimetype="application/json")
        name = request.get_json().get("lora_name")
        if not name:
            return refuse(400, "InvalidUserInput", "'lora_name' needs to be provided to unload a LoRA adapter.")
        if name not in self.adapters:
            return refuse(404, "NotFoundError", f"The lora adapter '{name}' cannot be found.")
        if self.cannot_remove:
            return refuse(500, "InternalServerError", f"Failed to remove lora adapter '{name}' from the engine.")
        del self.adapters[name]
        return Response(f"Success: LoRA adapter '{name}' removed successfully.")

    def chat(self, request: Request) -> Response:
        name = request.get_json()["model"]
        if name != "tiny" and (name not in self.adapters or self.chat_without_adapters):
            return refuse(404, "NotFoundError", f"The model `{name}` does not exist.", "model")
        if name in self.adapters and name not in self.held:
            (self.adapters[name] / "adapter_model.safetensors").read_bytes()
            self.held = {name}
        return self.base._chat(request)


def refuse(status: int, kind: str, message: str, param: str | None = None) -> Response:
    error = {"message": message, "type": kind, "param": param, "code": status}
    return Response(json.dumps({"error": error}), status, mimetype="application/json")


@pytest.fixture
def vllm(httpserver: HTTPServer, tmp_path: Path) -> Iterator[Vllm]:
    server = Vllm(EngineTwin())
    server.serve(httpserver)
    folder = str(tmp_path / "adapters")
    choice = LlmChoice(httpserver.url_for("/v1"), "key", "tiny", reads=False, engine="vllm", adapters=folder)
    with override_settings(MEMOS_LLM=choice):
        yield server


@pytest.fixture
def served(vllm: Vllm, httpserver: HTTPServer, tmp_path: Path) -> VllmEngine:
    folder = tmp_path / "adapters"
    folder.mkdir()
    return VllmEngine(Endpoint(httpserver.url_for("/v1"), "key", "tiny"), folder)


def list_files(folder: Path) -> list[Path]:
    return list((folder / "adapters").iterdir())


def test_adapter_is_loaded_in_the_format_of_peft_and_its_files_go_with_it(
    vllm: Vllm, served: VllmEngine, tmp_path: Path
) -> None:
    assert served.adapter_state("one") is None
    served.load_adapter("one", make_adapter())
    (read,) = vllm.read
    assert read["config"] == CONFIG | {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
    assert read["weights"] == make_adapter()
    (place,) = list_files(tmp_path)
    assert place.stat().st_mode & 0o077 == 0
    state = served.adapter_state("one")
    assert state is not None
    assert state.is_loaded
    served.drop_adapter("one")
    served.drop_adapter("one")
    assert vllm.adapters == {}
    assert list_files(tmp_path) == []


def test_second_load_of_the_same_adapter_is_no_error_and_leaves_its_files(
    vllm: Vllm, served: VllmEngine, tmp_path: Path
) -> None:
    served.load_adapter("one", make_adapter())
    served.load_adapter("one", make_adapter())
    assert len(vllm.read) == len(list_files(tmp_path)) == 1


@pytest.mark.parametrize("trouble", ["a large rank", "no safetensors", "no updates at runtime"])
def test_refused_adapter_leaves_no_file(trouble: str, vllm: Vllm, served: VllmEngine, tmp_path: Path) -> None:
    vllm.largest = 8 if trouble == "a large rank" else 64
    vllm.is_updatable = trouble != "no updates at runtime"
    with pytest.raises(ProviderUnavailable):
        served.load_adapter("one", b"no safetensors" if trouble == "no safetensors" else make_adapter())
    assert list_files(tmp_path) == []


def test_adapter_that_vllm_cannot_let_go_raises_so_that_the_job_tries_again(
    vllm: Vllm, served: VllmEngine, tmp_path: Path
) -> None:
    served.load_adapter("one", make_adapter())
    vllm.cannot_remove = True
    with pytest.raises(ProviderUnavailable):
        served.drop_adapter("one")
    vllm.cannot_remove = False
    served.drop_adapter("one")
    assert (vllm.adapters, list_files(tmp_path)) == ({}, [])


def mount_adapter(world: World, olivia: Contract, fact: str) -> tuple[str, MemoryForm]:
    """Add a memory and an approved adapter of it, mounted on olivia's persona."""
    memory = olivia.add(fact)["id"]
    run_jobs()
    form = form_add(
        world.olivia.actor, [UUID(memory)], kind=MemoryType.PARAMETER, content=make_adapter(), is_approved=True
    )
    persona = olivia.get("me/").json["personas"][0]["id"]
    assert olivia.patch(f"forms/{form.id}/", {"persona": persona}).status == 200
    return memory, form


def test_turn_names_the_adapter_as_the_model_and_the_answer_names_the_base(
    vllm: Vllm, world: World, olivia: Contract
) -> None:
    memory, _ = mount_adapter(world, olivia, "The museum closes at six.")
    turn = ask(olivia)
    (name,) = vllm.adapters
    assert vllm.base.asked[-1]["model"] == name
    assert vllm.base.asked[-1]["cache_salt"]
    assert turn["model"] == "tiny"
    assert engine() is not None
    assert olivia.delete(f"memories/{memory}/?purge=true").status == 204
    run_jobs()
    assert vllm.adapters == {}
    with acting(world.olivia.actor):
        assert not MemoryForm.objects.exists()


def test_adapter_that_vllm_dropped_for_another_is_read_again_from_its_files(
    vllm: Vllm, world: World, olivia: Contract
) -> None:
    mount_adapter(world, olivia, "The museum closes at six.")
    ask(olivia)
    (name,) = vllm.adapters
    vllm.held = {"another"}
    ask(olivia)
    assert (vllm.held, len(vllm.read)) == ({name}, 1)


def test_adapter_that_fails_gives_way_to_the_text(vllm: Vllm, world: World, olivia: Contract) -> None:
    mount_adapter(world, olivia, "The museum closes at six.")
    ask(olivia)
    asked = len(vllm.base.asked)
    vllm.chat_without_adapters = True
    turn = ask(olivia)
    assert turn["model"] == "tiny"
    assert "The museum closes at six." in vllm.base.asked[asked]["messages"][-1]["content"]
