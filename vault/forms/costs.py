"""The measured costs of the installation's engine: once for each model, then from the cache of this installation."""

from dataclasses import asdict

from vault.forms.measured import measure_once, read_measured
from vault.forms.rules import Costs, fit_costs
from vault.providers.engines import EngineModel, InferenceEngine

SHORT, LONG, QUERY = 128, 512, 32  # tokens
KEY = "forms:costs:{fingerprint}"


def engine_costs(engine: InferenceEngine, model: EngineModel) -> Costs:
    """Return the costs of an engine's model; the first call measures for some seconds. Raises ProviderUnavailable."""
    return Costs(
        **measure_once(KEY.format(fingerprint=model.fingerprint), lambda: asdict(measure_costs(engine, model)))
    )


def measured_costs(model: EngineModel) -> Costs | None:
    """Return the costs of a model if they were measured; nothing is measured."""
    found = read_measured(KEY.format(fingerprint=model.fingerprint))
    return Costs(**found) if found else None


def measure_costs(engine: InferenceEngine, model: EngineModel) -> Costs:
    """Measure the costs of an engine's model, for some seconds. Raises ProviderUnavailable."""
    longest = min(LONG, model.context // 2)
    engine.measure(SHORT // 2, QUERY)  # the first call of a model is slower than the others
    return fit_costs(engine.measure(min(SHORT, longest // 2), QUERY), engine.measure(longest, QUERY))
