"""From a file of questions to a task: what its columns hold, guessed and written down, as ``evalcore init`` does."""

from evalcore.shell.starter.guess import Guess, Preview, look_at_file
from evalcore.shell.starter.task_folder import TaskFolder, write_guess, write_template

__all__ = ["Guess", "Preview", "TaskFolder", "look_at_file", "write_guess", "write_template"]
