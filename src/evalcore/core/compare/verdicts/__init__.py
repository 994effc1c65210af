"""What a comparison says, and what it cannot: worse or not, the same or not.

points       percentages where shares are meant
margins      who is better, and what does not matter: the same within a margin, not worse by more than it
regressions  a run against its baseline
sentences    a difference as the sentence that a reader needs
pair_gates   gates on documents without a counterpart or a score
"""
