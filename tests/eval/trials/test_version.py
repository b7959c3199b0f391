"""Which code computed a result, and with which code weights were learned."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopbench.eval.trials import version


def test_weights_decide_the_code_of_a_result_but_not_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, weights = tmp_path / "code.py", tmp_path / "weights.json"
    code.write_text("1", encoding="utf-8")
    monkeypatch.setattr(version, "_ROOT", tmp_path)
    monkeypatch.setattr(version, "_sources", lambda: [code, weights])

    def versions(learned: str) -> tuple[str, str]:
        weights.write_text(learned, encoding="utf-8")
        version.code_version.cache_clear()
        return version.code_version(), version.code_version(weights=False)

    (first, trained), (second, again) = versions("{}"), versions("[]")
    version.code_version.cache_clear()

    assert (True, trained) == (first != second, again)
