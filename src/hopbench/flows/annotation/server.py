"""The local page on which a person writes questions and marks the passages that answer them."""

from __future__ import annotations

import asyncio
import random
import socket
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, Any

from hopbench.flows.annotation.draft import MAX_PLACES, Draft, OutdatedVersionError
from hopbench.flows.api.corpus import Corpus
from hopbench.flows.orchestration.server import guarded
from hopbench.retrieval.support.errors import HopBenchError, InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

LABELS = "bm25,hybrid,graph_expansion:tuned,pagerank,hoprank"
DEPTH = 8
SEARCH_LABEL, SEARCH_RESULTS = "hybrid", 20
MAX_BODY = 1_000_000
PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)


@dataclass
class AnnotationPages:
    """Answers the page's requests about one corpus and its annotations."""

    corpus: Corpus
    draft: Draft
    labels: Sequence[str]
    _one_at_a_time: Lock = field(default_factory=Lock)

    def state(self, _: Any = None) -> dict[str, Any]:
        """All questions, the passages that they mark, and the progress."""
        questions = list(self.draft.questions.values())
        marked = {passage for one in questions for passage in one.evidence}
        return {
            "corpus": self.corpus.name,
            "folder": str(self.draft.folder),
            "max_places": MAX_PLACES,
            "questions": [one.model_dump(mode="json") for one in questions],
            "passages": self._passages(marked),
            "progress": self.draft.progress(),
        }

    def pool(self, body: Any) -> dict[str, Any]:
        """The first passages of every label for a question, in an order that does not tell which label found them."""
        question = _text(body)
        passages: set[str] = set()
        failed = []
        for label in self.labels:
            try:
                passages |= set(self.corpus.retrieve(question, label, DEPTH).ids)
            except HopBenchError as error:
                failed.append(f"{label}: {error}")
        shuffled = sorted(passages)
        random.Random(zlib.crc32(question.encode())).shuffle(shuffled)
        return {"passages": self._passages(shuffled), "failed": failed}

    def search(self, body: Any) -> dict[str, Any]:
        """Passages for words that the person types, best first."""
        return {"passages": self._passages(self.corpus.retrieve(_text(body), SEARCH_LABEL, SEARCH_RESULTS).ids)}

    def save(self, body: Any) -> dict[str, Any]:
        """Store a question."""
        if not isinstance(body, dict):
            raise InputError("a question is an object with the fields id, text, answer, aliases, type, evidence")
        return {"question": self.draft.save(body).model_dump(mode="json"), "progress": self.draft.progress()}

    def remove(self, body: Any) -> dict[str, Any]:
        """Delete a question."""
        self.draft.remove(_text(body, "id"))
        return {"progress": self.draft.progress()}

    def _passages(self, ids: Any) -> list[dict[str, str]]:
        by_id = {passage.id: passage for passage in self.corpus.passages}
        found = [by_id[passage] for passage in ids if passage in by_id]
        return [{"id": one.id, "title": one.title, "text": one.text} for one in found]

    def app(self) -> ASGIApp:
        """The pages as a web application that answers this machine and its own page only."""
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse
        from starlette.routing import Route

        html = files(__package__).joinpath("page.html").read_text(encoding="utf-8")

        async def page(_: Request) -> Response:
            return HTMLResponse(html, headers={"content-security-policy": PAGE_POLICY, "cache-control": "no-store"})

        actions = {"pool": self.pool, "search": self.search, "save": self.save, "remove": self.remove}
        routes = [Route("/", page), Route("/api/state", self._answer(self.state))]
        routes += [Route(f"/api/{name}", self._answer(action), methods=["POST"]) for name, action in actions.items()]
        return guarded(Starlette(routes=routes), ())

    def _answer(self, action: Callable[[Any], dict[str, Any]]) -> Callable[[Request], Any]:
        from starlette.responses import JSONResponse

        def act(body: Any) -> dict[str, Any]:
            with self._one_at_a_time:  # requests of several windows; strategies share an index
                return action(body)

        async def answer(request: Request) -> Response:
            try:
                content = await request.body()
                if len(content) > MAX_BODY:
                    raise InputError(f"a request has at most {MAX_BODY:,} bytes, not {len(content):,}")
                body = await request.json() if content else None
                return JSONResponse(await asyncio.to_thread(act, body))
            except OutdatedVersionError as error:
                return JSONResponse({"detail": str(error)}, 409)
            except (HopBenchError, ValueError, RecursionError) as error:
                return JSONResponse({"detail": str(error)}, 400)

        return answer

    def serve(self, listener: socket.socket) -> None:
        """Answer on a bound socket until the process is interrupted."""
        import uvicorn

        config = uvicorn.Config(self.app(), log_level="error", lifespan="off", timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listener])


def _text(body: Any, name: str = "text") -> str:
    text = body.get(name) if isinstance(body, dict) else None
    if not isinstance(text, str) or not text.strip() or len(text) > 2_000:
        raise InputError(f"field {name}: a text of 1 to 2,000 characters is wanted")
    return text.strip()
