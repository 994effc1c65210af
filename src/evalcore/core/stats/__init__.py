"""Statistics: quantiles, standard errors, intervals, resampling, comparisons of runs."""
