"""Adapters on vLLM: its calls for LoRA adapters, as its documentation and its servers' answers have them."""

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
    """A server with the recorded answers. read: what it found at the path of each load."""

    base: EngineTwin
    adapters: set[str] = field(default_factory=set)
    read: list[dict[str, Any]] = field(default_factory=list)
    refuses: bool = False

    def serve(self, server: HTTPServer) -> None:
        server.expect_request("/v1/models").respond_with_handler(self.models)
        server.expect_request("/v1/load_lora_adapter", "POST").respond_with_handler(self.load)
        server.expect_request("/v1/unload_lora_adapter", "POST").respond_with_handler(self.unload)
        server.expect_request("/v1/chat/completions").respond_with_handler(self.base._chat)

    def models(self, _: Request) -> Response:
        data = [{"id": "tiny", "object": "model", "owned_by": "vllm", "root": "tiny", "max_model_len": 4096}]
        data += [{"id": name, "object": "model", "owned_by": "vllm", "parent": "tiny"} for name in self.adapters]
        return Response(json.dumps({"object": "list", "data": data}), mimetype="application/json")

    def load(self, request: Request) -> Response:
        body = request.get_json()
        name, place = body["lora_name"], Path(body["lora_path"])
        if self.refuses or name in self.adapters:
            message = f"The lora adapter '{name}' has already been loaded."
            error = {"message": message, "type": "InvalidUserInput", "param": None, "code": 400}
            return Response(json.dumps({"error": error}), 400, mimetype="application/json")
        self.read.append(
            {
                "config": json.loads((place / "adapter_config.json").read_text()),
                "weights": (place / "adapter_model.safetensors").read_bytes(),
            }
        )
        self.adapters.add(name)
        return Response(f"Success: LoRA adapter '{name}' added successfully.")

    def unload(self, request: Request) -> Response:
        name = request.get_json()["lora_name"]
        if name not in self.adapters:
            error = {"message": f"The lora adapter '{name}' cannot be found.", "type": "NotFoundError", "code": 404}
            return Response(json.dumps({"error": error}), 404, mimetype="application/json")
        self.adapters.remove(name)
        return Response(f"Success: LoRA adapter '{name}' removed successfully.")


@pytest.fixture
def vllm(httpserver: HTTPServer, tmp_path: Path) -> Iterator[Vllm]:
    server = Vllm(EngineTwin())
    server.serve(httpserver)
    folder = str(tmp_path / "adapters")
    choice = LlmChoice(httpserver.url_for("/v1"), "key", "tiny", reads=False, engine="vllm", adapters=folder)
    with override_settings(MEMOS_LLM=choice):
        yield server


def test_adapter_is_loaded_in_the_format_of_peft_and_its_files_are_removed(
    vllm: Vllm, httpserver: HTTPServer, tmp_path: Path
) -> None:
    served = VllmEngine(Endpoint(httpserver.url_for("/v1"), "key", "tiny"), tmp_path)
    assert served.adapter_state("one") is None
    served.load_adapter("one", make_adapter())
    (read,) = vllm.read
    assert read["config"] == CONFIG | {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
    assert read["weights"] == make_adapter()
    assert list(tmp_path.iterdir()) == []
    state = served.adapter_state("one")
    assert state is not None
    assert state.is_loaded
    served.drop_adapter("one")
    served.drop_adapter("one")
    assert vllm.adapters == set()


def test_refused_adapter_leaves_no_file(vllm: Vllm, httpserver: HTTPServer, tmp_path: Path) -> None:
    served = VllmEngine(Endpoint(httpserver.url_for("/v1"), "key", "tiny"), tmp_path)
    vllm.refuses = True
    for content in (make_adapter(), b"no safetensors"):
        with pytest.raises(ProviderUnavailable):
            served.load_adapter("one", content)
    assert list(tmp_path.iterdir()) == []


def test_turn_names_the_adapter_as_the_model_and_the_answer_names_the_base(
    vllm: Vllm, world: World, olivia: Contract
) -> None:
    memory = olivia.add("The museum closes at six.")["id"]
    run_jobs()
    form = form_add(
        world.olivia.actor, [UUID(memory)], kind=MemoryType.PARAMETER, content=make_adapter(), is_approved=True
    )
    persona = olivia.get("me/").json["personas"][0]["id"]
    assert olivia.patch(f"forms/{form.id}/", {"persona": persona}).status == 200
    turn = ask(olivia)
    (name,) = vllm.adapters
    assert vllm.base.asked[-1]["model"] == name
    assert vllm.base.asked[-1]["cache_salt"]
    assert turn["model"] == "tiny"
    assert engine() is not None
    assert olivia.delete(f"memories/{memory}/?purge=true").status == 204
    run_jobs()
    assert vllm.adapters == set()
    with acting(world.olivia.actor):
        assert not MemoryForm.objects.exists()
