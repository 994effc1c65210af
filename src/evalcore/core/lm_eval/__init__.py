"""What lm-eval 0.4.13 does differently, an entry for each of its errata (see ``core/lm_eval/errata.py``)."""
