"""A batch of results to a row for each document; one file for each kind of batch.

metric           Metric: a function of a batch, and what is known of its values
normalise        texts normalised, options read, the best over several golds
verdict          how each metric explains a score, in words
overlap/         two texts compared word by word: ROUGE, and the edits of TER
choice           multiple choice
text             one text against its golds
corpus           BLEU, chrF and TER as counts per sentence
corpus_score     BLEU, chrF and TER from summed counts
likelihood       one likelihood per document, and whole texts
form             what a user's own function takes
custom           a user's own function as a metric
process_results  scorers of one document at a time, lm-eval's process_results among them
dispatch         METRICS and SCORERS: a batch to scores by output type
"""
