"""Scores made where the answers are: in Ray Data, Spark, Daft or Dask, or on the ranks of a training job.

batch_rows     rows of an Arrow batch as documents, by their ids
batch_score    a batch scored: what such a program calls
batch_merge    the partials of batches, from wherever, merged and closed
rank_scores    the scores of ranks, through files or torch.distributed
"""
