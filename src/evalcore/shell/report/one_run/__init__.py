"""What a page draws of one run besides its numbers.

reply_facts        what only replies tell: fallbacks, scores by repeat, confidences
score_shape        how the scores of documents are distributed
repeat_stability   whether repeats of a question agree
calibration_curve  confidence and accuracy, and what a calibrated model would get
ratio_form         numbers that are exact for any choice of documents
what_if            scores by document and group rules, for numbers of other documents and weights
reproduction       how to make the run again, and what it took
run_charts         all of these for a page
"""
