"""Bytes of a text file as a string, in whatever encoding they were saved."""

from __future__ import annotations

import codecs
import re

from hopbench.eval.benchmarks.documents.document import UnreadableError

_MARKS = (  # UTF-32's begins as UTF-16's does
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_GUESS_FROM = 1 << 20  # bytes: charset-normalizer reads all that it is given
SAVE_AS_UTF8 = "save it as UTF-8"


def decode(content: bytes, declared: str = "") -> tuple[str, str]:
    """The text, and the encoding in which it was read where that is not UTF-8 (else empty).

    A byte order mark decides, then UTF-8 where the bytes are valid, then the encoding that the file declares, then a
    guess by charset-normalizer.

    Raises
    ------
    UnreadableError
        For bytes that are no text, or are not valid in the encoding that their mark names.
    """
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    if encoding:
        try:
            return _readable(content.decode(encoding)), "" if encoding == "utf-8-sig" else encoding
        except UnicodeDecodeError as error:
            raise UnreadableError(
                f"is not valid {encoding} at byte {error.start:,}, though it begins as such: {SAVE_AS_UTF8}"
            ) from error
    try:
        return _readable(content.decode()), ""
    except UnicodeDecodeError:
        pass
    return _guessed(content, declared)


def _guessed(content: bytes, declared: str) -> tuple[str, str]:
    if declared:
        try:
            return _readable(content.decode(declared)), declared
        except (LookupError, UnicodeDecodeError, ValueError):
            pass  # what is declared wrongly is guessed as if nothing were declared
    if b"\0" in content[:_GUESS_FROM]:
        raise UnreadableError(_NO_TEXT)
    from charset_normalizer import from_bytes

    guesses = from_bytes(content[:_GUESS_FROM])
    found = guesses.best()
    if found is None:
        raise UnreadableError(f"is in no encoding that can be recognised: {SAVE_AS_UTF8}")
    if found.encoding == "cp1250":  # first by its name where several are as likely
        for other in guesses:
            as_likely = other.chaos <= found.chaos and other.coherence >= found.coherence
            if other.encoding == "cp1252" and as_likely and not _CENTRAL_EUROPEAN.intersection(str(other)):
                found = other
                break
    return _readable(content.decode(found.encoding, errors="replace")), found.encoding


_CENTRAL_EUROPEAN = frozenset("ŠšŽž")
"""Letters that Windows' two Latin code pages write alike; languages that use them rather take cp1250."""
_NO_TEXT = "is binary, not text: give it the ending of what it is, or move it out of the folder"


def _readable(text: str) -> str:
    """The text without control characters; refused where so many stand in it that it is none."""
    marks = len(_CONTROL.findall(text))
    if "\0" in text or marks * 20 > len(text):
        raise UnreadableError(_NO_TEXT)
    return _CONTROL.sub(" ", text) if marks else text
