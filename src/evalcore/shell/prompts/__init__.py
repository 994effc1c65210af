"""Prompts: from a task's configuration and documents to requests, as lm-eval 0.4.13 writes them."""

from __future__ import annotations

from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking, Built

__all__ = ["Asking", "Built", "build_task"]
