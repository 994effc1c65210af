"""Statistics over numbers and influences, without scipy: errors, intervals, tests and plans.

special      the incomplete beta function and a root finder
quantiles    quantiles and distribution functions of the normal, t, beta and binomial laws
influence    standard errors from the influence of each document, plain and clustered
bootstrap    standard errors without influences: seeded resampling, and the exact error of a median
skewness     what skewed scores cost: longer intervals, and jumps that no score shows
links        scales on which an estimate is nearly normal
intervals    confidence intervals that are never a point
percentile   intervals from resampled values: percentile and BCa
noise        the error taken apart: choice of questions, draws of answers
families     corrections for many tests: Holm, Benjamini and Hochberg
pair_tests   paired differences and their tests
sample_size  documents and repeats that a difference or a half-width takes
"""
