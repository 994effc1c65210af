"""lm_eval."""
