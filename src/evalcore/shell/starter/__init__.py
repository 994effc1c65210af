"""A task and a config for a file of questions: what its columns hold is guessed, shown and written down.

table           a file as documents whose columns have names that templates can use
column_roles    which column holds the question, the answer, the choices, the id, the subject
answer_view     documents as a task sees them, and what there is to know of their answers
choice_shapes   answers that are choices: by letter, label, place or text
uneven_choices  answers that are choices in nearly every row, and the rows that do not fit
text_shapes     answers that are texts: numbers, short and long ones, continuations, texts alone
shapes          SHAPES: what the answers look like, and the task that measures them
guess           look_at_file(): all of these, and why
task_text       a task and its config as commented YAML
task_folder     write_guess(), write_template(): the files of a task, never over others
templates       TEMPLATES: a small task for each output type
"""
