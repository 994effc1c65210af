"""A batch of results to a row for each document; one file for each kind of batch.

metric           Metric: a function of a batch, and what is known of its values
normalise        texts normalised, options read
verdict          how each metric explains a score, in words
references       scores of prediction and gold pairs to scores of documents
choice           multiple choice
text             one text against its golds
corpus           BLEU, chrF and TER as counts per sentence
corpus_score     BLEU, chrF and TER from summed counts
likelihood       one likelihood per document, and whole texts
custom           a user's function of prediction and gold
process_results  scorers of one document at a time, lm-eval's process_results among them
dispatch         METRICS and SCORERS: a batch to scores by output type
"""
