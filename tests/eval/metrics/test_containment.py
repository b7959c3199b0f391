"""An answer is found however it is typed, in every script, and never inside another word or number."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.eval.metrics.containment import contains_answer, match_tokens, scorable_answers


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        # typographic marks
        ("They call it “Norhaven” here.", "Norhaven"),
        ("Ils disent «Norhaven» ici.", "Norhaven"),
        ("Sie heißt „Ardmore“ seit 1888.", "Ardmore"),
        ("The yard of O’Neill.", "O'Neill"),
        ("The yard of O'Neill.", "O´Neill"),
        ("It is Norhaven’s yard.", "Norhaven"),
        ("1967–1970", "1967-1970"),
        ("1967—1970", "1970"),
        ("It lay at −12 degrees.", "-12 degrees"),
        ("In Norhaven… nobody", "Norhaven"),
        ("Nor\u00a0Haven\u202fBay", "Nor Haven Bay"),
        ("Nor\u200bhaven, Tav\u00adel, \ufeffArd\u2060more", "Norhaven, Tavel, Ardmore"),
        ("Norhaven™ and Tavel®", "Norhaven"),
        ("Norhaven¹² says", "Norhaven"),  # a footnote's mark
        ("3½ litres of CO₂ at 45℃", "3 1/2"),
        ("3½ litres of CO₂ at 45℃", "CO2"),
        ("3½ litres of CO₂ at 45℃", "45 °C"),
        ("Ｎｏｒｈａｖｅｎ ﬁsh", "norhaven fish"),
        (unicodedata.normalize("NFD", "Björk"), "BJÖRK"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("埃德温·阿德莫尔", "埃德温・阿德莫尔"),
        # numbers
        ("Some 45% of it", "45 percent"),
        ("Some 45 per cent of it", "45%"),
        ("سنة ١٩٣١", "1931"),
        # words beside marks
        ("Ardmore/Tavel", "Tavel"),
        ("The Ardmore-built ferry", "Ardmore"),
        ("C++ and R", "C++"),
        # scripts
        ("जहाज नॉरहेवन, में बना।", "नॉरहेवन"),
        ("بُنيت السفينة في نورهافن، عام 1931.", "نورهافن"),
        ("نورهـــافن", "نورهافن"),
        ("海燕号由北岭造船厂建造。", "北岭造船厂"),
        ("海燕号は北嶺造船所で建造された。", "北嶺造船所"),
        ("กำเรือจากนอร์เฮเวนมาถึง", "นอร์เฮเวน"),
        ("ទីក្រុងន័រហេវិនធំ", "ន័រហេវិន"),
        ("ဆိပ်ကမ်းမြို့နော်ဟေဗင်ကို", "နော်ဟေဗင်"),
        ("ເມືອງນໍເຮເວັນໃຫຍ່", "ນໍເຮເວັນ"),
        ("배는 노르헤이븐에서 지었다", "노르헤이븐"),
        ("苹果iPhone手机", "iPhone"),
        ("北岭\n造船厂", "北岭造船厂"),
    ],
)
def test_an_answer_is_found(text: str, answer: str) -> None:
    assert contains_answer(text, scorable_answers([answer]))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("in 1910", "10"),
        ("1910年", "10"),
        ("10²", "102"),
        ("1½", "11"),
        ("Die Norhavenwerft baute sie.", "Norhaven"),  # no rule tells a compound from another word
        ("किला", "काला"),  # they differ in marks alone
        ("バス", "ハス"),
        ("กำ", "กา"),
        ("the of", "The Who"),
        ("vitamin C", "C++"),
        ("Norhaven. Bay", "Norhaven Bay"),  # the tokens stand in a row
        ("", "Norhaven"),
    ],
)
def test_another_word_is_no_answer(text: str, answer: str) -> None:
    assert not contains_answer(text, scorable_answers([answer]))


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        (["yes"], 0),
        (["No.", "Norhaven"], 0),  # the answer itself is no
        (["Norhaven", "no"], 1),  # an alias is dropped
        (["Norhaven", "NORHAVEN"], 1),
        (["–", "…", ""], 0),  # marks alone stand in every text
        ([], 0),
    ],
)
def test_answers_that_no_text_can_show_do_not_count(answers: list[str], count: int) -> None:
    assert count == len(scorable_answers(answers))


@given(st.text(alphabet=string.ascii_letters + " -'", max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_a_text_contains_what_stands_in_it_between_spaces(answer: str, before: str, after: str) -> None:
    assert all(contains_answer(f"{before} {answer} {after}", [one]) for one in scorable_answers([answer]))


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
def test_ascii_has_the_tokens_that_it_has_beside_other_letters(text: str) -> None:
    assert [*match_tokens(text).split(), "é"] == match_tokens(f"{text} é").split()
