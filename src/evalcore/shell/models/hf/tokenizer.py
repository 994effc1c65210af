"""The tokenizer of a model: texts to tokens as lm-eval encodes them, each text once; and tokens to replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.prefixes import Tokens
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Generate, LogLikelihood, Request
from evalcore.shell.models.hf.hf_settings import WHERE, HfSettings


class TextEncoder:
    """Encodes texts; those that were announced are encoded together, which is quicker."""

    def __init__(self, tokenizer: Any, settings: HfSettings) -> None:
        self.tokenizer, self.add_bos = tokenizer, settings.add_bos_token
        own = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        self.prefix = own if settings.prefix_token_id is None else settings.prefix_token_id
        if self.prefix is None:
            raise EvalError(
                f"the tokenizer has no BOS or EOS token to stand for an empty context: give prefix_token_id{WHERE}"
            )
        self.opening = tokenizer.decode([self.prefix])
        self._known: dict[tuple[str, bool], Tokens] = {}

    def announce(self, requests: Iterable[Request], *, apart: bool = False) -> None:
        """Encode all that these requests need; ``apart``: contexts and continuations alone."""
        begun = dict.fromkeys(text for request in requests for text in _list_texts(request, apart))
        for special in (False, True):
            texts = [text for text in begun if self._specially(text, True) is special]
            if texts:
                made = self.tokenizer(texts, **self._options(special))["input_ids"]
                self._known |= {(text, True): tuple(tokens) for text, tokens in zip(texts, made, strict=True)}

    def encode(self, text: str, begin: bool = True) -> Tokens:
        """Encode a text; ``begin``: special tokens may come first, unless the text begins with one."""
        found = self._known.get((text, begin))
        return (
            tuple(self.tokenizer.encode(text, **self._options(self._specially(text, begin))))
            if found is None
            else found
        )

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def _specially(self, text: str, begin: bool) -> bool:
        return begin and not (self.opening and text.startswith(self.opening))

    def _options(self, special: bool) -> dict[str, bool]:
        if not special:
            return {"add_special_tokens": False}
        return {} if self.add_bos is None else {"add_special_tokens": self.add_bos}


def _list_texts(request: Request, apart: bool) -> tuple[str, ...]:
    if isinstance(request, LogLikelihood):
        whole = () if apart or not request.context else (request.context + request.continuation,)
        return (request.context.rstrip(), *whole) if request.context else ()
    return (request.prompt,) if isinstance(request, Generate) else (request.text,)


def find_template(tokenizer: Any) -> str | None:
    """The chat template of a tokenizer; of several, the usual one."""
    found = getattr(tokenizer, "chat_template", None)
    return found.get("default") if isinstance(found, dict) else found


class Speech(Struct, frozen=True):
    """How tokens become text, which of them end it, and what divides the odds of those that were there before."""

    decode: Callable[[Sequence[int]], str]
    ends: frozenset[int]
    penalty: float = 1.0


def read_speech(config: Any, texts: TextEncoder, think_end: int | str | None) -> Speech:
    """How a model speaks, by its own generation config. As in lm-eval, the tokenizer's end of text always ends it."""
    own = config.eos_token_id
    ends = [*(own if isinstance(own, list) else [own]), texts.tokenizer.eos_token_id]
    penalty = float(getattr(config, "repetition_penalty", None) or 1.0)
    return Speech(partial(_decode, texts, think_end), frozenset(one for one in ends if one is not None), penalty)


def _decode(texts: TextEncoder, think_end: int | str | None, tokens: Sequence[int]) -> str:
    """The text of a reply, without what it was thought with."""
    if isinstance(think_end, int):
        after = list(tokens)[::-1].index(think_end) if think_end in tokens else len(tokens)
        return texts.decode(tokens[len(tokens) - after :]).lstrip()
    text = texts.decode(tokens)
    return text.rpartition(think_end)[2].lstrip() if isinstance(think_end, str) and think_end in text else text


UNUSUAL: PMap[str, tuple[object, ...]] = pmap(
    {
        "num_beams": (None, 1),
        "no_repeat_ngram_size": (None, 0),
        "encoder_repetition_penalty": (None, 1.0),
        "min_length": (None, 0),
        "min_new_tokens": (None, 0),
        "bad_words_ids": (None,),
        "suppress_tokens": (None, []),
        "begin_suppress_tokens": (None, []),
        "forced_bos_token_id": (None,),
        "forced_eos_token_id": (None,),
    }
)
"""Settings of generation configs that change greedy texts, and the values that do not."""


def warn_of_config(config: Any) -> tuple[str, ...]:
    """What a model's own generation config asks for, which lm-eval applies to every text and this walk does not."""
    asked = [f"{name} {value}" for name, off in UNUSUAL.items() if (value := getattr(config, name, None)) not in off]
    told = (
        f"the model's generation_config sets {', '.join(asked)}, which is not applied; prefix_cache: false applies it"
    )
    return (told,) if asked else ()
