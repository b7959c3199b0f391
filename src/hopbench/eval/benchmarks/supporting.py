"""Which passages a question's supporting facts mean: those of the title that have the sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hopbench.eval.benchmarks.contexts import CorpusBuilder, Fact, Titled
from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.benchmarks.remarks import remark
from hopbench.eval.resemblance import plain_title


@dataclass
class Supporting:
    """Finds the gold passages of one question after the other, and notes what is doubtful about them."""

    corpus: CorpusBuilder
    beyond: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)

    def passages(self, facts: Sequence[Fact], own: Sequence[Titled], place: Place) -> list[str]:
        """The passage of each fact: one of the question's own context, else of another's.

        Of several passages with the title it is the first that has all sentences of the facts with this title, else
        the first that has this fact's sentence, else the first. Titles may differ in HTML entities and Unicode form.
        """
        found = {title: self._of_title(title, facts, own, place) for title in {fact.title: None for fact in facts}}
        return [found[fact.title].get(fact.sentence, "") for fact in facts]

    def _of_title(self, title: str, facts: Sequence[Fact], own: Sequence[Titled], place: Place) -> dict[int, str]:
        """Sentence → passage, of the facts with this title."""
        sentences = list({fact.sentence: None for fact in facts if fact.title == title})
        known = _with_title(title, own) or _with_title(title, self.corpus.titled(title))
        if not known:
            self.corpus.miss(title, place)
            return {}
        whole = [one for one in known if all(map(one.has, sentences))]
        where = f"{title!r} ({place.unit} {place.number})"
        if len({one.passage for one in whole}) > 1:
            self.unclear.append(where)
        chosen = dict(self._each(sentences, whole or known, where))
        if "" in chosen.values():
            self.corpus.miss(title, place)
        return chosen

    def _each(self, sentences: Sequence[int], known: Sequence[Titled], where: str) -> Iterator[tuple[int, str]]:
        for sentence in sentences:
            having = [one for one in known if one.has(sentence)]
            if not having:
                self.beyond.append(f"{where}, sentence {sentence} of {known[0].sentences}")
            yield sentence, (having or known)[0].passage

    def report(self) -> None:
        """Remark on facts whose sentence no paragraph has, and on those that several have."""
        remark(
            "supporting facts name a sentence beyond their paragraph",
            self.beyond,
            "check the file: the paragraph counts as gold all the same",
        )
        remark(
            "supporting titles stand for several paragraphs that all have the sentences",
            self.unclear,
            "check the file: the first of them counts as gold",
        )


def _with_title(title: str, known: Sequence[Titled]) -> list[Titled]:
    """Those with just this title, else those whose title differs only in how it is written; each passage once."""
    found = [one for one in known if one.title == title]
    if not found:
        plain = plain_title(title)
        found = [one for one in known if plain_title(one.title) == plain]
    return list({one.passage: one for one in found}.values())
