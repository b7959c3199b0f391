"""The exported retriever as MLflow serves it.

MLflow copies this file into the model and runs it where the model is loaded.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.retrieval.retriever import RetrievedPassage, Retriever


def _plain(passage: RetrievedPassage) -> dict[str, Any]:
    """The fields of a passage in the signature."""
    return {name: getattr(passage, name) for name in ("rank", "id", "title", "text")} | {"score": float(passage.score)}


with warnings.catch_warnings():
    # MLflow asks for type hints in place of the signature, which says more (what passages are, and k).
    warnings.simplefilter("ignore", UserWarning)

    class RetrieverModel(PythonModel):  # type: ignore[misc]  # mlflow's class is not typed
        """Ranks passages for a table of questions: a row's best `k`, a parameter of the request (default 5)."""

        retriever: Retriever

        def load_context(self, context: Any) -> None:
            """Open the exported folder stored with the model."""
            from hopbench.retrieval.bundle import read_bundle

            self.retriever = read_bundle(Path(context.artifacts["retriever"]))

        def predict(
            self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
        ) -> list[dict[str, Any]]:
            """A row per question: `passages`, a list of id, title, text, score and rank, best first."""
            found = self.retriever.batch(model_input["question"].tolist(), int((params or {}).get("k", 5)))
            return [{"passages": [_plain(passage) for passage in answer]} for answer in found]


set_model(RetrieverModel())
