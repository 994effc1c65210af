"""Recorded answers scored again: by the task's own rules, by those of a task file, or by those of flags."""
