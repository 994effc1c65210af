"""Two texts compared word by word, as rouge-score and sacrebleu compare them.

rouge    common n-grams and subsequences
ter      edits and shifts
"""
