"""Commands that make numbers, of a model's answers or of recorded ones.

run    ask a model, score, write
score  recorded answers scored again
merge  partial scores of any machine closed into a run
"""
