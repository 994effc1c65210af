"""Statistics over numbers and influences, without scipy: errors, intervals, tests and plans.

special      the incomplete beta function and a root finder
quantiles    quantiles and distribution functions of the normal, t, beta and binomial laws
influence    standard errors from the influence of each document, plain and clustered
skewness     Hall's transformation: tests and intervals of skewed sums; and jumps that no score shows
bootstrap    resampled values: standard errors and intervals (percentile, BCa); the exact error of a median
links        scales on which an estimate is nearly normal
intervals    confidence intervals that are never a point
noise        the error taken apart: choice of questions, draws of answers
families     corrections for many tests: Holm, Benjamini and Hochberg
pair_tests   paired differences, their intervals, and McNemar's test
sign_flips   sign-flip tests: sums without draws, anything else by draws
sample_size  documents and repeats that a difference or a half-width takes
"""
