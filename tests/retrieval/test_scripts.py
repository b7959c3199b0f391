"""Words, names and sentences of every script, and the languages that a corpus may have."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.eval.explain.answers import quote
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.extract.triples import triple_tables
from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO
from hopbench.retrieval.index import Linker
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.text import (
    Language,
    Spellings,
    Tagger,
    detect,
    fold,
    folded_words,
    name_key,
    search_words,
    sentences,
    shortened,
    tokens,
    units,
)
from hopbench.retrieval.types import Chunk, Triple

SCRIPTS = """किला काला नदी バス ハス パス 海燕号 กรุงเทพ น้ำ й и ё Straße Müller Łódź كتاب كِتاب שלום שָׁלוֹם 서울
    ＡＢＣ ﬁn ½ İ""".split()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("किला", "काला"),
        ("किला", "कोला"),
        ("バス", "ハス"),
        ("バス", "パス"),
        ("й", "и"),
        ("ї", "і"),
        ("กา", "ก่า"),
        ("กิน", "กัน"),
        ("أ", "ا"),
        ("বাড়ি", "বাড়"),
    ],
)
def test_marks_that_make_another_letter_stay(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Björk", "bjork"),
        ("ﾊﾞｽ", "バス"),
        ("Ｓｏｎｙ", "sony"),
        ("ёлка", "елка"),
        ("Алекса\u0301ндр", "александр"),
        ("كَتَبَ", "كتب"),
        ("كـتاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("می‌خواهم", "میخواهم"),
        ("Ελλάδα", "ελλαδα"),
    ],
)
def test_spellings_of_one_word_compare_equal(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("बड़ा किला, नदी में।", ["बड़ा", "किला", "नदी", "में"]),
        ("Алекса\u0301ндр жил", ["Алекса\u0301ндр", "жил"]),
        ("Windows™ 2½ km²", ["Windows", "2", "1", "2", "km2"]),
        ("هذا الكتاب؟", ["هذا", "الكتاب"]),
        ("เรือข้ามฟาก", ["เรือข้ามฟาก"]),
    ],
)
def test_words_keep_their_marks(text: str, expected: list[str]) -> None:
    assert [unicodedata.normalize("NFKC", word) for word in expected] == [token.text for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("海燕号是渡轮。", ["海燕", "燕号", "号是", "是渡", "渡轮"]),
        ("第0号", ["第", "0", "号"]),
        ("バスは Tokyo", ["バス", "スは", "tokyo"]),
        ("水", ["水"]),
        ("กำ น้ำ", ["กํา", "น้ํา"]),  # a base with its marks is one character
        ("किला में क", ["किला", "में"]),  # words of other scripts stay whole; a single letter is none
        ("Größe STRASSE Straße", ["grösse", "strasse", "strasse"]),
    ],
)
def test_search_reads_pairs_of_characters_where_no_spaces_stand(text: str, expected: list[str]) -> None:
    assert expected == search_words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "バスは走る。ハスは咲く！はい？「行く。」東京。",
            ["バスは走る。", "ハスは咲く！", "はい？", "「行く。」", "東京。"],
        ),
        ("किला एक नगर है। काला एक जहाज है॥ नदी", ["किला एक नगर है।", "काला एक जहाज है॥", "नदी"]),
        ("هل هذا؟ نعم۔ لا", ["هل هذا؟", "نعم۔", "لا"]),
        ("走了吗?是的!好", ["走了吗?", "是的!", "好"]),
        ("他说…好。", ["他说…", "好。"]),
        ("He said… and left. Wait… What?", ["He said… and left.", "Wait…", "What?"]),
        ("ሰላም። ደህና።", ["ሰላም።", "ደህና።"]),
        ("版本3.5发布", ["版本3.5发布"]),
    ],
)
def test_sentences_end_in_every_script(text: str, expected: list[str]) -> None:
    assert expected == sentences(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_read_as_before_other_scripts_were(text: str) -> None:
    word = re.compile(r"[^\W_]+(?:['’][^\W\d_]{2,})?")
    assert word.findall(text.lower()) == folded_words(text)
    lexical = LexicalIndex(())
    stop = Language().search_stop
    assert [one for one in re.findall(r"\b\w\w+\b", text.lower()) if one not in stop] == lexical._tokens(text)
    assert re.findall(r"\b\w\w+\b", text.lower()) == search_words(text)


@given(st.lists(st.sampled_from(SCRIPTS), max_size=6).map(" ".join), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_form_of_unicode_changes_no_key(text: str, form: str) -> None:
    other = unicodedata.normalize(form, text)  # type: ignore[arg-type]
    assert name_key(text) == name_key(other)
    assert folded_words(text) == folded_words(other)
    assert search_words(text) == search_words(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    for word in tokens(text):
        assert word.folded == fold(word.folded)
        assert " " not in word.folded


@given(st.text())
def test_no_letter_is_lost(text: str) -> None:
    text = unicodedata.normalize("NFKC", text).replace("'", " ").replace("’", " ")
    letters = [c for c in text if c.isalnum()]
    assert letters == [c for token in tokens(text) for c in token.text if c.isalnum()]
    for token in tokens(text):
        assert set(token.folded) == set("".join(units(token.folded)))


def test_a_text_without_spaces_is_shortened_between_characters() -> None:
    short = shortened("号 " + "น้ำ" * 50, 40)
    assert 30 <= len(short) <= 40
    assert short.endswith("น้ำ...")


@pytest.mark.parametrize("names", [["C", "C++", "C#"], ["→", "!!!", "←"], ["Müller", "Muller"], ["किला", "काला"]])
def test_different_titles_are_different_entities(names: list[str]) -> None:
    chunks = [Chunk(str(n), str(n), 0, name, "It is here.") for n, name in enumerate(names)]
    entities = rule_tables(chunks, Tagger(chunk.content for chunk in chunks))[ENTITY]

    assert len(names) == entities["id"].nunique()
    assert names == entities["name"].tolist()
    triples = [Triple(chunk.id, names[0], "is not", other) for chunk, other in zip(chunks[1:], names[1:], strict=True)]
    assert len(names) - 1 == len(triple_tables(chunks, triples, Tagger())[RELATED_TO])


def test_the_spelling_decides_between_names_and_any_finds_the_only_one() -> None:
    names = [
        ("e:muller", "Muller", "title", ()),
        ("e:müller", "Müller", "title", ()),
        ("e:bjork", "Björk", "title", ()),
    ]
    reader = Linker(names, [])

    assert ["e:müller"] == [link.entity for link in reader.links("Who is Müller?")]
    assert ["e:muller"] == [link.entity for link in reader.links("Who is Muller?")]
    assert ["e:bjork"] == [link.entity for link in reader.links("Who is Bjork?")]
    assert "e:müller" == reader.resolve("MÜLLER")
    assert "e:muller" == reader.resolve("muller")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("バスは町を走る", ["バス", "は町を走る"]),
        ("バスケットボール", ["バスケットボール"]),  # a longer word in katakana is no bus
        ("ジョン・スミスは", ["ジョン", "スミス", "は"]),
        ("東京都の京都大学", ["東京", "都", "の", "京都大学"]),
        ("ใกล้กรุงเทพ", ["ใกล้", "กรุงเทพ"]),
        ("서울은 크다", ["서울", "은", "크다"]),
        ("Pythonは言語", ["Python", "は言語"]),
    ],
)
def test_the_longest_known_names_are_found_in_runs(text: str, expected: list[str]) -> None:
    spellings = Spellings(["バス", "ジョン・スミス", "東京", "都", "京都大学", "京都", "กรุงเทพ", "서울"])
    found = [token.text for token in spellings.tokens(text)]

    assert [unicodedata.normalize("NFKC", part) for part in expected] == found


def test_names_are_mentioned_and_related_in_a_script_without_spaces_or_capitals() -> None:
    rows = [
        ("海燕号", "海燕号由澜江造船厂建造。"),
        ("澜江造船厂", "澜江造船厂位于诺海镇。"),
        ("诺海镇", "诺海镇很小。"),
    ]
    chunks = [Chunk(str(n), str(n), 0, title, text) for n, (title, text) in enumerate(rows)]
    tables = rule_tables(chunks, Tagger((chunk.content for chunk in chunks), Language("zh")))

    ends = set(zip(tables[RELATED_TO]["source"], tables[RELATED_TO]["target"], strict=True))
    assert {("e:海燕号", "e:澜江造船厂"), ("e:澜江造船厂", "e:诺海镇")} == ends


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "Die Werft wurde im neunzehnten Jahrhundert von Kaufleuten gegründet und baut heute Fähren für die Elbe. "
            * 3,
            "de",
        ),
        ("The shipyard was founded in the nineteenth century by merchants of the city, who built ferries. " * 3, "en"),
        ("海燕号是一艘渡轮。", "zh"),
        ("海燕丸は渡し船である。", "ja"),
        ("เรือข้ามฟาก", "th"),
        ("यह जहाज कारखाना उन्नीसवीं सदी में शहर के व्यापारियों ने स्थापित किया था। " * 5, "hi"),
        ("تأسس حوض بناء السفن في القرن التاسع عشر على يد تجار المدينة. " * 5, "ar"),
        ("Верфь была основана в девятнадцатом веке городскими купцами. " * 5, "ru"),
        ("Bus.", "und"),
        ("", "und"),
    ],
)
def test_the_language_is_told_by_script_and_words(text: str, code: str) -> None:
    assert Language(code) == detect([text])
    assert Language(code) == detect([text] * 9)


def test_a_corpus_of_two_languages_is_mixed() -> None:
    assert "mul" == detect(["海燕号是一艘渡轮。"] * 5 + ["เรือข้ามฟาก"] * 5).code


def test_stop_words_and_stems_are_those_of_the_language() -> None:
    tagger = Tagger(["Die Häuser der Stadt"], Language("de"))

    assert Tagger((), Language("de")).tags("das Haus der Häuser") == tagger.tags("das Haus der Häuser")
    assert "der" not in tagger.tags("der Stadt")
    assert ["海燕", "燕号"] == Tagger((), Language("zh")).tags("海燕号")
    assert [] == LexicalIndex(["die Stadt"], Language("de"))._tokens("die und der")


def test_an_english_corpus_finds_its_texts_in_other_scripts() -> None:
    index = LexicalIndex(["The ferry is here.", "海燕号是一艘渡轮", "The park is there."])
    (found,) = index.top(["海燕号在哪里？"])

    assert [1] == found.rows.tolist()


@pytest.mark.parametrize(
    ("text", "name", "mention"),
    [
        ("海燕号由澜江造船厂建造。", "澜江造船厂", "澜江造船厂"),
        ("Ed Woods sang. Ed Wood sat.", "Ed Wood", "Ed Wood"),
        ("किलाबंदी है। यह किला है।", "किला", "किला"),
    ],
)
def test_the_sentence_that_spells_a_name_is_quoted(text: str, name: str, mention: str) -> None:
    found = quote("title", text, name)

    assert found is not None
    assert mention == found.mention
    assert not found.after.startswith(("s", "बंदी"))
