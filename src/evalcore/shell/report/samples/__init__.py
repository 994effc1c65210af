"""The samples of runs for their page: which documents are the same, what became of each, what was asked and replied.

document_pairs  the documents of all runs, those that are the same together
sample_scores   the scores of a task's documents, metric by metric
filter_steps    what each filter made of the replies, step by step
sample_texts    what was asked and replied, as texts
task_samples    the samples of a task, in columns
sample_chunks   the samples of all tasks, packed
"""
