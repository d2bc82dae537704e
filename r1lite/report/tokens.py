"""Finds the position of each token in a completion's text, from the run's vocabulary, without other libraries."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r1lite.run.files import read_bytes
from r1lite.run.places import numbered_checkpoints

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _bytes_of_characters() -> dict[str, int]:
    """Returns the inverse of GPT-2's `bytes_to_unicode`, which writes each byte as a printable character."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    found = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(0x100) if byte not in plain]
    return found | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_CHARACTERS = _bytes_of_characters()


class Vocabulary:
    """The tokens of a `tokenizer.json` as bytes of text."""

    def __init__(self, tokenizer: dict[str, Any]) -> None:
        model = tokenizer["model"]
        vocab = model["vocab"]
        pairs = (
            vocab.items() if isinstance(vocab, dict) else ((piece, number) for number, (piece, _) in enumerate(vocab))
        )
        byte_level = "ByteLevel" in json.dumps(tokenizer.get("decoder"))
        read = _byte_level if byte_level else _sentence_piece
        self.pieces: dict[int, bytes] = {int(number): read(str(piece)) for piece, number in pairs}
        for added in tokenizer.get("added_tokens") or ():
            self.pieces[int(added["id"])] = b"" if added.get("special") else str(added["content"]).encode()

    def lengths(self, token_ids: Sequence[int], text: str) -> list[int] | None:
        """Returns the number of characters of each token; None if the tokens don't decode to this text."""
        try:
            pieces = [self.pieces[number] for number in token_ids]
        except (KeyError, TypeError):
            return None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        parts = [decoder.decode(piece) for piece in pieces]
        if parts:
            parts[-1] += decoder.decode(b"", True)
        if parts and "".join(parts) == f" {text}":  # SentencePiece starts every text with a space
            parts[0] = parts[0][1:]
        return [len(part) for part in parts] if "".join(parts) == text else None


def _byte_level(piece: str) -> bytes:
    try:
        return bytes(_CHARACTERS[char] for char in piece)
    except KeyError:  # not a byte-level token
        return piece.encode("utf-8", "replace")


def _sentence_piece(piece: str) -> bytes:
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("▁", " ").encode("utf-8", "replace")


def vocabulary_of(run: Path, model: str | None) -> Vocabulary | None:
    """Returns the vocabulary of a run's newest checkpoint, otherwise of its model if that is a folder; None if there is
    none on this machine."""
    places = [path for _, path in reversed(numbered_checkpoints(run / "checkpoints"))]
    if model:
        from r1lite.nano import model_place

        places.append(Path(model_place(model)))
    for place in places:
        try:
            return Vocabulary(json.loads(read_bytes(place / "tokenizer.json").decode()))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            continue
    return None
