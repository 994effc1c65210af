"""Metrics of one text against its golds. Where there are several golds, the best one counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain
from math import inf
from operator import eq

from pyrsistent import PMap, pmap

from evalcore.core.answers.result import GenResult
from evalcore.core.answers.text import GenBatch, gen_batch
from evalcore.core.filters.letter import name_letters
from evalcore.core.metrics.corpus import CORPUS_DEFAULTS, bleu, chrf, chrf_plus_plus, ter
from evalcore.core.metrics.metric import Marks, Metric
from evalcore.core.metrics.normalise import (
    Texts,
    answer_words,
    best_over_golds,
    best_within_limit,
    each_pair,
    edit_distance,
    normalise_distinct,
    normaliser,
    number_option,
    refuse_unknown,
)
from evalcore.core.metrics.overlap.rouge import rouge1, rouge2, rougeL, rougeLsum
from evalcore.core.metrics.verdict import tell_equality, tell_extraction, tell_part
from evalcore.core.records.array import frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Floats, Objects

EXACT_OPTIONS = ("ignore_case", "ignore_numbers", "ignore_punctuation", "regexes_to_ignore")


def exact_match(batch: GenBatch, options: Options) -> Floats | Marks:
    """1 if the prediction equals a gold, both normalised as lm-eval does.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["The answer", "!!!"], [("the answer.",), ("...",)])
    >>> exact_match(batch, {"ignore_case": True, "ignore_punctuation": True})
    Floats(values=Array([1., 0.]))
    """
    if not options:
        return best_over_golds(batch, lambda predictions, golds: list(map(eq, predictions, golds)))
    refuse_unknown("exact_match", options, EXACT_OPTIONS)
    regexes = options.get("regexes_to_ignore") or ()
    if not isinstance(regexes, tuple | list):
        raise EvalError(f"expected a list of regular expressions in regexes_to_ignore, got {regexes!r}")
    normalise = normaliser(
        tuple(regexes),
        case=bool(options.get("ignore_case")),
        punctuation=bool(options.get("ignore_punctuation")),
        numbers=bool(options.get("ignore_numbers")),
    )
    return best_over_golds(batch, partial(_same_when_normal, normalise))


def _same_when_normal(normalise: Callable[[Texts], Texts], predictions: Texts, golds: Texts) -> list[bool]:
    normal = normalise_distinct(normalise, chain(predictions, golds))
    # Erratum E13: a gold that normalisation empties would equal every other text that it empties.
    return [
        normal[text] == wanted if (wanted := normal[gold]) or not gold else text == gold
        for text, gold in zip(predictions, golds, strict=True)
    ]


def acc(batch: GenBatch, options: Options) -> Floats | Marks:
    """1 if the prediction is the gold, or one of them: the letter of the right choice, say.

    Where a document has choices, a gold that is none of them, nor the letter of one, makes it unscorable.

    >>> from evalcore.core.answers.text import make_texts
    >>> acc(make_texts(["B", "[no letter]"], ["B", "A"]), {})
    Floats(values=Array([1., 0.]))
    """
    refuse_unknown("acc", options, ())
    scored, lost = exact_match(batch, options), _find_lost_golds(batch)
    marks = scored if isinstance(scored, Marks) else Marks(scored, {})
    return Marks(marks.rows, {**marks.missing, **lost}) if lost else scored


def _find_lost_golds(batch: GenBatch) -> dict[int, tuple[int, str]]:
    out: dict[int, tuple[int, str]] = {}
    for at, (sample, golds) in enumerate(zip(batch.samples, batch.golds, strict=True)):
        count = len(sample.choices)
        wrong = [one for one in golds if one not in sample.choices and one not in name_letters(count)] if count else []
        if wrong:
            out[at] = UNSCORABLE, f"expected one of the {count} choices, got {wrong[0]!r}"
    return out


def quasi_exact_match(batch: GenBatch, options: Options) -> Floats | Marks:
    """HELM's: equal in lower case without punctuation, articles and extra whitespace.

    >>> from evalcore.core.answers.text import make_texts
    >>> quasi_exact_match(make_texts(["a  Cat.", "the"], [("The cat",), ("A",)]), {})
    Floats(values=Array([1., 0.]))
    """
    refuse_unknown("quasi_exact_match", options, ())
    return best_over_golds(batch, partial(each_pair, _quasi_same))


def _quasi_same(prediction: str, gold: str) -> bool:
    # As in E13, a gold such as "A" or "..." must not lose all it has: leave out the step that would empty it.
    for articles in (False, True):
        if wanted := answer_words(gold, articles=articles):
            return answer_words(prediction, articles=articles) == wanted
    return prediction.split() == gold.split()


def includes(batch: GenBatch, options: Options) -> Floats | Marks:
    """Inspect's: 1 if a gold is a part of the prediction.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["It is Paris."], [("paris",)])
    >>> includes(batch, {}), includes(batch, {"ignore_case": False})
    (Floats(values=Array([1.])), Floats(values=Array([0.])))
    """
    refuse_unknown("includes", options, ("ignore_case",))
    if options.get("ignore_case", True):
        return best_over_golds(batch, partial(each_pair, lambda text, gold: gold.casefold() in text.casefold()))
    return best_over_golds(batch, partial(each_pair, lambda text, gold: gold in text))


# --- similarity ----------------------------------------------------------------------------------------


def f1(batch: GenBatch, options: Options) -> Floats | Marks:
    """SQuAD's: harmonic mean of precision and recall of the words; without words, 1 if neither has any.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["the big cat"], [("Cat", "a dog")])
    >>> f1(batch, {}).rows.values.data.round(3).tolist()
    [0.667]
    """
    refuse_unknown("f1", options, ())
    return best_over_golds(batch, _word_f1s)


def _word_f1s(predictions: Texts, golds: Texts) -> list[float]:
    words = {text: Counter(answer_words(text)) for text in dict.fromkeys(chain(predictions, golds))}
    return [_bag_f1(words[text], words[gold]) for text, gold in zip(predictions, golds, strict=True)]


def _bag_f1(found: Counter[str], wanted: Counter[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    common = (found & wanted).total()
    if not common:
        return 0.0
    precision, recall = common / found.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def anls(batch: GenBatch, options: Options) -> Floats | Marks:
    """DocVQA's: 1 − edit distance / longer length, and 0 where that is below the threshold.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["Invoice 12"], [("invoice 13",)])
    >>> anls(batch, {}), anls(batch, {"threshold": 0.95})
    (Floats(values=Array([0.9])), Floats(values=Array([0.])))
    """
    refuse_unknown("anls", options, ("threshold",))
    similarity = partial(_similarity, number_option(options, "threshold", 0.5))
    return best_within_limit(batch, similarity)


def _similarity(threshold: float, prediction: str, gold: str) -> float:
    one, two = (" ".join(text.lower().split()) for text in (prediction, gold))
    longer = max(len(one), len(two))
    if longer == 0:
        return 1.0
    # The distance is at least the difference in length, so a rambling answer need not be aligned.
    if 1 - (longer - min(len(one), len(two))) / longer < threshold:
        return 0.0
    close = 1 - edit_distance(one, two) / longer
    return close if close >= threshold else 0.0


# --- without a gold ------------------------------------------------------------------------------------


def extraction_rate(batch: GenBatch, options: Options) -> Floats:
    """1 if the filter found an answer, 0 if it fell back.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["4", "[invalid]"], ["5", "5"], fell_back=[False, True])
    >>> extraction_rate(batch, {}).values      # right or wrong
    Array([1., 0.])
    """
    refuse_unknown("extraction_rate", options, ())
    return Floats(frozen(1.0 - batch.fell_back))


def bypass(batch: GenBatch, options: Options) -> Objects:
    """No score: the answers are recorded, nothing is measured.

    >>> from evalcore.core.answers.text import make_texts
    >>> bypass(make_texts(["4"], [("4",)]), {}).values
    (None,)
    """
    return Objects((None,) * len(batch.predictions))


def _tell_exact(result: GenResult, options: Options) -> str:
    return tell_equality(exact_match, result, options)


def _tell_included(result: GenResult, options: Options) -> str:
    return tell_part(includes, result, options)


CASELESS = freeze_options(ignore_case=True)
TEXT_METRICS: PMap[str, Metric[GenBatch]] = pmap(
    {
        "exact_match": Metric(exact_match, gen_batch, options=None, explain=_tell_exact),
        "acc": Metric(acc, gen_batch, options=None, explain=_tell_exact),
        "quasi_exact_match": Metric(quasi_exact_match, gen_batch, options=None),
        "includes": Metric(includes, gen_batch, "mean", True, (0.0, 1.0), None, CASELESS, _tell_included),
        "f1": Metric(f1, gen_batch, options=None),
        "anls": Metric(anls, gen_batch, options=None, defaults=freeze_options(threshold=0.5)),
        "rouge1": Metric(rouge1, gen_batch, options=None),
        "rouge2": Metric(rouge2, gen_batch, options=None),
        "rougeL": Metric(rougeL, gen_batch, options=None),
        "rougeLsum": Metric(rougeLsum, gen_batch, options=None),
        "extraction_rate": Metric(extraction_rate, gen_batch, options=None, explain=tell_extraction),
        "bleu": Metric(bleu, gen_batch, "bleu", True, (0.0, 100.0), None, CORPUS_DEFAULTS["bleu"]),
        "chrf": Metric(chrf, gen_batch, "chrf", True, (0.0, 100.0), None, CORPUS_DEFAULTS["chrf"]),
        "chrf++": Metric(chrf_plus_plus, gen_batch, "chrf++", True, (0.0, 100.0), None, CORPUS_DEFAULTS["chrf++"]),
        "ter": Metric(ter, gen_batch, aggregation="ter", higher_is_better=False, bounds=(0.0, inf), options=None),
        "bypass": Metric(bypass, gen_batch, aggregation="bypass", higher_is_better=None, options=None),
    }
)
