"""Serve the engine until Ctrl-C: `make engine`."""

import os
import sys
from pathlib import Path

from memos_engine.settings import SettingsError, read_settings

os.environ["HF_HUB_OFFLINE"] = "1"


def main() -> None:
    try:
        chosen = read_settings()
    except SettingsError as failure:
        raise SystemExit(f"engine: {failure}") from None
    import torch
    import uvicorn

    from memos_engine.app import Engine, make_app
    from memos_engine.model import Model, prepare_smollm

    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    folder = Path(chosen.folder).resolve() if chosen.folder else prepare_smollm(chosen.data)
    if not (folder / "config.json").exists():
        raise SystemExit(f"engine: {folder} is no folder of a model")
    model = Model(folder, dtype=chosen.dtype, budget=chosen.cache_bytes)
    engine = Engine(model, chosen.token, chosen.queue)
    print(
        f"engine: serving {model.name} on {model.device}; start MemOS Web with\n"
        f"  MEMOS_LLM_URL=http://{chosen.host}:{chosen.port}/v1 MEMOS_LLM_MODEL={model.name} MEMOS_LLM_ENGINE=local"
        f" MEMOS_LLM_READS=no make run",
        file=sys.stderr,
    )
    uvicorn.run(make_app(engine), host=chosen.host, port=chosen.port, log_level="warning", timeout_graceful_shutdown=5)


if __name__ == "__main__":
    main()
