#!/usr/bin/env bash
# optuna 5.0.0. Expected: suggest_float(low, high, step) with a step that does not divide the range is refused, or keeps `high`.
# Observed: `high` is lowered to the last step with a UserWarning, so the bound that was asked for is never tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check optuna==5.0.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import warnings

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trial = optuna.create_study().ask()
    trial.suggest_float("restart", 0.0, 1.0, step=0.3)
high = trial.distributions["restart"].high
print("optuna", optuna.__version__)
print("high asked for: 1.0, kept:", high, "; warnings:", [str(one.message)[:100] for one in caught])
assert abs(high - 0.9) < 1e-9 and caught
PY
