"""What each metric computes, as a formula, and where its definition is from.

Here *l* is a log-likelihood, *c* a choice, *g* the right one, *x* a reply, *y* a gold text, *n* the number of documents.
"""

from __future__ import annotations

LM_EVAL = "lm-eval's `{}`"
CHOSEN = "1 if argmax over c of {} is right, else 0; the mean of it"
SACREBLEU = "sacrebleu's `{}`"
ROUGE = "rouge-score's `{}`; Lin 2004, *ROUGE*"
NOTHING = ("none: answers are recorded, nothing is measured", "lm-eval's `bypass`")

FORMULAS: dict[tuple[str, str], tuple[str, str]] = {
    ("multiple_choice", "acc"): (CHOSEN.format("l(c)"), LM_EVAL.format("ConfigurableTask.process_results")),
    ("multiple_choice", "acc_norm"): (
        CHOSEN.format("l(c) / characters of c"),
        LM_EVAL.format("ConfigurableTask.process_results"),
    ),
    ("multiple_choice", "acc_bytes"): (
        CHOSEN.format("l(c) / UTF-8 bytes of c"),
        LM_EVAL.format("ConfigurableTask.process_results"),
    ),
    ("multiple_choice", "acc_token"): (CHOSEN.format("l(c) / tokens of c"), "Brown et al. 2020, section 2.4"),
    ("multiple_choice", "acc_mutual_info"): (
        CHOSEN.format("l(c given the question) − l(c alone)"),
        LM_EVAL.format("ConfigurableTask.process_results"),
    ),
    ("multiple_choice", "exact_match"): (
        "1 if every token of a right choice is the likeliest, else 0; the mean of it",
        LM_EVAL.format("ConfigurableTask.process_results"),
    ),
    ("multiple_choice", "f1"): (
        "2 TP / (2 TP + FP + FN) of gold and likeliest class",
        "scikit-learn's `f1_score`, as in lm-eval",
    ),
    ("multiple_choice", "mcc"): (
        "(n t − Σ aₖ bₖ) / √((n² − Σ aₖ²)(n² − Σ bₖ²)), t right, aₖ predicted and bₖ true in class k",
        "scikit-learn's `matthews_corrcoef`; Gorodkin 2004",
    ),
    ("multiple_choice", "brier_score"): (
        "Σ over c of (p(c) − [c = g])², p(c) = exp l(c) / Σ exp l; the mean of it",
        "Brier 1950; lm-eval's `brier_score`",
    ),
    ("multiple_choice", "likelihood"): ("l(g); the mean of it", LM_EVAL.format("ConfigurableTask.process_results")),
    ("multiple_choice", "choice_prob"): (
        "exp l(g) / Σ over c of exp l(c); the mean of it",
        "lm-eval's tasks `truthfulqa_mc2`",
    ),
    ("multiple_choice", "ece"): (
        "Σ over bins b of (n_b / n) · |share right in b − mean of max p(c) in b|",
        "Guo et al. 2017, *On Calibration of Modern Neural Networks*",
    ),
    ("multiple_choice", "acc_all"): (
        "1 if every document of a question is right, else 0; the mean over questions",
        "lm-eval's `acc_all`; Khashabi et al. 2018, *MultiRC*",
    ),
    ("multiple_choice", "bypass"): NOTHING,
    ("generate_until", "exact_match"): (
        "1 if x = y once both are normalised, else 0; the mean of it",
        LM_EVAL.format("exact_match_hf_evaluate"),
    ),
    ("generate_until", "acc"): (
        "1 if x is a gold, such as the letter of a choice, else 0; the mean of it",
        "evalcore's own",
    ),
    ("generate_until", "quasi_exact_match"): (
        "1 if x = y without case, punctuation, articles and extra spaces, else 0; the mean of it",
        "Liang et al. 2022, *HELM*",
    ),
    ("generate_until", "includes"): ("1 if y is part of x, else 0; the mean of it", "Inspect's `includes`"),
    ("generate_until", "f1"): (
        "2 P R / (P + R) of the words of x and y, as bags; the mean of it",
        "Rajpurkar et al. 2016, *SQuAD*",
    ),
    ("generate_until", "anls"): (
        "1 − d / max(|x|, |y|), d the edit distance; 0 below `threshold`; the mean of it",
        "Biten et al. 2019, *Scene Text Visual Question Answering*",
    ),
    ("generate_until", "rouge1"): ("2 P R / (P + R) of common words", ROUGE.format("rouge1")),
    ("generate_until", "rouge2"): ("2 P R / (P + R) of common pairs of words", ROUGE.format("rouge2")),
    ("generate_until", "rougeL"): (
        "2 P R / (P + R), P = s / |x|, R = s / |y|, s the longest common subsequence",
        ROUGE.format("rougeL"),
    ),
    ("generate_until", "rougeLsum"): (
        "the same with the union of the subsequences of each gold line",
        ROUGE.format("rougeLsum"),
    ),
    ("generate_until", "extraction_rate"): (
        "1 if the filters found an answer, 0 if they fell back; the mean of it",
        "evalcore's own",
    ),
    ("generate_until", "bleu"): (
        "100 · BP · exp(¼ Σ log pₖ), pₖ the precision of k-grams, BP = min(1, exp(1 − r / c))",
        f"{SACREBLEU.format('corpus_bleu')}; Papineni et al. 2002; Post 2018",
    ),
    ("generate_until", "chrf"): (
        "100 (1 + β²) P R / (β² P + R), P and R averaged over n-grams of 1 to 6 characters, β = 2",
        f"{SACREBLEU.format('corpus_chrf')}; Popović 2015",
    ),
    ("generate_until", "chrf++"): (
        "the same with n-grams of 1 and 2 words",
        f"{SACREBLEU.format('CHRF(word_order=2)')}; Popović 2017",
    ),
    ("generate_until", "ter"): (
        "100 Σ edits / Σ mean gold length; an edit changes a word or moves a phrase",
        f"{SACREBLEU.format('corpus_ter')}; Snover et al. 2006",
    ),
    ("generate_until", "bypass"): NOTHING,
    ("loglikelihood", "acc"): (
        "1 if every token of the target is the likeliest, else 0; the mean of it",
        LM_EVAL.format("ConfigurableTask.process_results"),
    ),
    ("loglikelihood", "perplexity"): ("exp(−Σ l / n)", LM_EVAL.format("perplexity")),
    ("loglikelihood", "acc_all"): (
        "1 if every document of a question is right, else 0; the mean over questions",
        "lm-eval's `acc_all`; Khashabi et al. 2018, *MultiRC*",
    ),
    ("loglikelihood", "bypass"): NOTHING,
    ("loglikelihood_rolling", "word_perplexity"): ("exp(−Σ l / Σ words)", LM_EVAL.format("weighted_perplexity")),
    ("loglikelihood_rolling", "byte_perplexity"): ("exp(−Σ l / Σ UTF-8 bytes)", LM_EVAL.format("weighted_perplexity")),
    ("loglikelihood_rolling", "bits_per_byte"): ("−Σ l / (Σ UTF-8 bytes · ln 2)", LM_EVAL.format("bits_per_byte")),
    ("loglikelihood_rolling", "bypass"): NOTHING,
}
