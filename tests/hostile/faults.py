"""Every fault and attack that a run must survive, and the tests that inject it."""

from __future__ import annotations

from tests.hostile.table import Fault

LOG, DISK, CRASH = "shell/test_answerlog.py::", "shell/test_answerlog_disk.py::", "shell/test_answerlog_crashes.py"
SERVER, OPENAI, KILL = "shell/test_openai_faults.py::", "shell/test_openai.py::", "shell/test_kill.py::"
ORDER, MOVES, STREAMS = "shell/test_openai_order.py::", "shell/test_server_moves.py::", "shell/test_streams.py::"
DONE, VIEW = "shell/test_finished_tasks.py::", "shell/test_view.py::"
INPUT, LOGS, HERE = "core/test_bad_input.py::", "shell/test_answer_faults.py::", "hostile/"

FAULTS = (
    # --- the disk
    Fault(
        "F1",
        "kill -9 at every append and question, among replies that share a sync, at random moments",
        "the same results; asked again: at most what was in flight",
        (
            f"{HERE}test_kills_and_races.py::test_kill_at_every_append",
            f"{HERE}test_kills_and_races.py::test_kill_at_every_question",
            f"{KILL}test_kill_9_among_replies_that_share_a_sync",
            f"{KILL}test_kill_9_at_random_moments",
            f"{DISK}test_killed_at_any_moment_loses_nothing_acknowledged",
        ),
    ),
    Fault(
        "F2",
        "a log cut at every byte of its last record",
        "the tail is moved aside, only that record is asked again",
        (
            f"{LOG}test_truncated_at_every_byte_of_the_last_record",
            f"{LOG}test_truncated_in_the_header",
            f"{LOG}test_nul_block_at_the_end_is_torn",
        ),
    ),
    Fault(
        "F3",
        "flipped bytes, wrong checksums, two records of one key",
        "named by line, never used, never skipped in silence",
        (
            f"{LOG}test_any_flipped_byte_of_a_middle_line_is_named",
            f"{LOG}test_damaged_header_is_named_and_not_fatal",
            f"{LOG}test_later_reply_counts_and_the_conflict_is_said",
            f"{CRASH}",
        ),
    ),
    Fault(
        "F4",
        "a full or broken disk at every write and sync",
        "nothing that was stored is damaged, the message names the file",
        (
            f"{DISK}test_failed_disk_at_every_write",
            f"{DISK}test_file_size_limit_leaves_all_earlier_records",
            f"{LOG}test_a_wait_that_fails_withdraws_all_that_came_together",
        ),
    ),
    Fault(
        "F5",
        "the power goes, and what was not synced with it",
        "what was acknowledged is there; replies that come together wait once",
        (f"{HERE}test_whole_runs.py", f"{LOG}test_answers_that_come_together_wait_for_the_disk_once"),
    ),
    Fault(
        "F6",
        "two runs on one folder; locks of dead, silent and foreign processes",
        "one gets in, the other says who holds it",
        (
            f"{HERE}test_kills_and_races.py::test_runs_that_race_for_a_folder",
            f"{DISK}test_only_one_of_many_gets_in",
            f"{DISK}test_second_writer_is_refused_with_the_holder",
            f"{DISK}test_lock_of_another_host_is_respected",
            f"{DISK}test_lock_of_a_dead_process_is_taken_over",
        ),
    ),
    Fault(
        "F7",
        "another model, task, dataset or option in the same folder",
        "no answer is used for another question",
        (
            f"{OPENAI}test_identity_changes_with_what_changes_answers_and_with_nothing_else",
            f"{LOG}test_request_hash_tells_requests_apart",
        ),
    ),
    Fault(
        "F8",
        "repeats of a sampled request",
        "each has a record of its own",
        (f"{OPENAI}test_repeats_differ_where_sampling_does",),
    ),
    Fault("F9", "a failure after a success", "the success is kept", (f"{LOG}test_a_failure_never_undoes_a_success",)),
    Fault(
        "F10",
        "SIGHUP, SIGTERM, Ctrl-C",
        "said, locks released, answers kept, exit 128 + signal",
        (f"{STREAMS}test_a_stopped_run_says_so_and_leaves_no_lock",),
    ),
    Fault(
        "F11",
        "standard streams that are closed, broken or full, for every command",
        "the work is done; only lost output makes 0 a 74",
        (f"{STREAMS}test_any_stream_may_be_missing", f"{STREAMS}test_a_file_never_becomes_a_closed_stream"),
    ),
    Fault(
        "F12",
        "a disk that is full for lock, config, answers, samples, results",
        "exit 74, not 2",
        (f"{STREAMS}test_a_full_disk_is_no_bad_input", f"{STREAMS}test_no_command_takes_a_full_disk_for_bad_input"),
    ),
    Fault(
        "F13",
        "a kill while a later task is scored; other data, prompts or rules in the same folder",
        "finished tasks are on the disk; earlier results are kept and what changed is named",
        (
            f"{DONE}test_finished_tasks_are_on_the_disk_before_the_next_is_scored",
            f"{DONE}test_a_run_that_is_killed_over_others_results_loses_neither",
            f"{DONE}test_results_of_something_else_are_kept_and_named",
        ),
    ),
    Fault(
        "F14",
        "counts that do not add up",
        "no result, exit 70",
        (f"{DONE}test_counts_that_do_not_add_up_are_no_results", "core/test_ledger.py"),
    ),
    # --- the server
    Fault(
        "N1",
        "429 with Retry-After of every form",
        "honoured, bounded, fewer in flight",
        (
            f"{SERVER}test_retry_after",
            f"{SERVER}test_waits_are_bounded_and_at_least_what_was_told",
            f"{SERVER}test_complaints_lower_the_number_in_flight_of_retries_too",
        ),
    ),
    Fault(
        "N2",
        "5xx, resets, cut bodies, broken chunks, no host, no TLS",
        "retried; then that document failed, no other",
        (
            f"{SERVER}test_a_passing_fault_is_survived",
            f"{SERVER}test_a_lasting_fault_fails_that_question_and_no_other",
            f"{SERVER}test_a_third_of_requests_go_wrong_and_nothing_changes",
            f"{SERVER}test_broken_chunks_are_survived",
            f"{SERVER}test_no_such_host",
            f"{SERVER}test_a_server_without_tls_is_named",
            f"{KILL}test_a_server_that_fails_three_in_ten_gives_the_same_results",
        ),
    ),
    Fault(
        "N3",
        "400, 401, 403, 404, 413, 422",
        "not asked again; a refusal at the start stops the run",
        (f"{SERVER}test_a_refusal_is_not_asked_again", f"{SERVER}test_a_server_that_begins_by_refusing_stops_the_run"),
    ),
    Fault(
        "N4",
        "a server that hangs or dribbles",
        "deadlines",
        (
            f"{SERVER}test_a_server_that_hangs_meets_a_deadline",
            f"{SERVER}test_a_server_that_is_silent_meets_a_deadline_of_its_own",
        ),
    ),
    Fault(
        "N5",
        "HTML, nothing, errors with 200, no choices, null, wrong types",
        "a failure, never an empty text",
        (
            f"{SERVER}test_what_is_not_an_answer_is_a_failure_and_never_an_empty_text",
            f"{SERVER}test_any_body_is_a_text_or_a_named_fault",
        ),
    ),
    Fault(
        "N6",
        "cut off, filtered, empty",
        "scored and counted",
        (f"{SERVER}test_how_a_reply_ended_is_kept_and_an_empty_text_is_an_answer",),
    ),
    Fault(
        "N7",
        "bodies too large, compressed bombs",
        "not read to their end",
        (f"{SERVER}test_a_body_too_large_is_not_read_to_its_end", f"{SERVER}test_a_compressed_body_is_not_unfolded"),
    ),
    Fault(
        "N8",
        "log-probabilities that are missing, NaN, infinite, misplaced",
        "a failure; all at minus infinity: unscorable",
        ("shell/test_openai_logprobs.py", f"{INPUT}test_impossible_likelihoods_are_unscorable"),
    ),
    Fault(
        "N9",
        "replies out of order, twice, to nothing that was asked",
        "matched by question or refused",
        (f"{SERVER}test_replies_are_those_of_their_questions_whatever_the_order",),
    ),
    Fault("N10", "redirects to another host", "refused", (f"{SERVER}test_redirects_are_refused",)),
    Fault(
        "N11",
        "every reply sent twice over a kept connection",
        "the same scores; doubtful answers are withdrawn and asked again",
        (
            f"{ORDER}test_replies_sent_twice_change_no_score",
            f"{ORDER}test_answers_that_may_be_those_of_others_are_withdrawn_in_the_log_and_asked_again",
            f"{ORDER}test_a_run_killed_after_a_withdrawal_asks_again",
        ),
    ),
    Fault(
        "N12",
        "the same model at another port; another model",
        "goes on in the same folder; refused with what differs",
        (
            f"{MOVES}test_the_same_model_at_another_port_goes_on_in_the_same_folder",
            f"{MOVES}test_another_model_is_refused_with_what_differs",
        ),
    ),
    Fault(
        "N13",
        "a server that goes away",
        "told at once and counted, given up after a declared time, all is kept, exit 69",
        (f"{MOVES}test_a_server_that_is_gone_is_told_of_at_once_and_all_is_kept",),
    ),
    # --- what the core is given
    Fault(
        "C1",
        "documents twice, missing, out of order, of other tasks",
        "an error with its place, or counted",
        (
            f"{INPUT}test_a_document_twice",
            f"{INPUT}test_a_place_twice",
            f"{INPUT}test_an_answer_for_an_unknown_document",
            f"{INPUT}test_answers_of_another_task",
            f"{INPUT}test_a_document_without_an_answer_failed_and_is_counted",
            f"{INPUT}test_a_key_that_is_no_whole_number",
        ),
    ),
    Fault(
        "C2",
        "golds that are no choice",
        "that document is unscorable",
        (
            f"{INPUT}test_a_gold_that_is_no_choice_is_unscorable",
            f"{INPUT}test_digits_are_a_gold_where_they_are_a_choice",
            f"{INPUT}test_a_gold_past_the_choices_of_a_generation_is_unscorable",
        ),
    ),
    Fault(
        "C3",
        "no choices, one, equal ones, empty ones",
        "a defined result or a reason",
        (
            f"{INPUT}test_no_choices_and_no_likelihoods",
            f"{INPUT}test_one_choice_is_always_right",
            f"{INPUT}test_of_equal_choices_the_first_is_meant_and_the_first_best_wins",
            f"{INPUT}test_a_choice_without_length_has_no_normalised_score",
        ),
    ),
    Fault(
        "C4",
        "empty and odd texts",
        "a score or a reason",
        (
            f"{INPUT}test_strange_texts_have_a_score_or_a_reason",
            f"{INPUT}test_an_empty_generation_is_wrong_and_equal_only_to_an_empty_gold",
        ),
    ),
    Fault(
        "C5",
        "surrogates, NUL, line separators, broken UTF-8",
        "come back byte by byte",
        (f"{OPENAI}test_odd_texts_survive_the_wire", f"{LOG}test_every_reply_comes_back_as_it_was"),
    ),
    Fault(
        "C6",
        "scores that are NaN, infinite, text, too large",
        "unscorable, counted",
        (
            f"{INPUT}test_a_score_that_is_no_number_is_unscorable",
            f"{INPUT}test_a_score_too_large_for_a_float",
            "core/test_hostile_numbers.py",
        ),
    ),
    Fault(
        "C7",
        "deep JSON, numbers of 5,000 digits, damage anywhere in a log",
        "documents, problems or our error",
        (
            f"{LOGS}test_any_damage_gives_documents_problems_or_our_error",
            f"{LOGS}test_any_other_value_gives_documents_problems_or_our_error",
            f"{HERE}test_fuzz.py",
        ),
    ),
    Fault(
        "C8",
        "no documents, one, two",
        "no value, no error, or both, with the reason",
        (
            f"{INPUT}test_no_documents_have_no_numbers",
            f"{INPUT}test_one_document_has_a_value_and_no_error",
            f"{INPUT}test_no_document_scored_has_no_value_and_the_first_reason",
        ),
    ),
    Fault(
        "C9",
        "patterns, templates, metrics and entries that take for ever; patterns that cannot be compiled",
        "that document is unscorable with its budget; the rest is scored",
        ("shell/test_deadlines.py",),
    ),
    Fault(
        "C10",
        "one gold of 1.5 among whole ones",
        "its own document alone has no score",
        ("shell/test_golds_with_fractions.py",),
    ),
    Fault(
        "C11",
        "keys that come twice in tables, data and logs",
        "an error with file, line and key",
        ("shell/test_doubled_keys.py",),
    ),
    Fault(
        "C12",
        "an entry of a host that raises, exits, returns nonsense, changes its input or hangs",
        "its own document or number, nothing else",
        ("core/test_contained_entries.py",),
    ),
    # --- files of others
    Fault(
        "S1",
        "YAML of classes, aliases, bombs, depth",
        "refused with a line",
        ("shell/test_tasks_index.py", "shell/test_plan.py"),
    ),
    Fault(
        "S2",
        "includes from elsewhere, in circles, missing",
        "refused with the chain",
        ("shell/test_tasks_resolve.py::test_a_file_of_its_own_may_not_include_from_elsewhere",),
    ),
    Fault("S3", "code in task files", "runs only if trusted, by hash", ("shell/test_tasks_trust.py",)),
    Fault(
        "S4",
        "templates that escape, grow or never end",
        "an error, soon",
        (
            "shell/test_prompts_templates.py::test_hostile_templates_end_soon_in_an_error",
            "shell/test_prompts_templates.py::test_hostile_chat_templates_end_soon_in_an_error",
            "shell/test_prompts_templates.py::test_hostile_lists",
            "shell/test_prompts_templates.py::test_a_document_is_never_a_template",
        ),
    ),
    Fault("S5", "names of tasks and models as paths", "no file outside the folder", ("shell/test_output_files.py",)),
    Fault(
        "S7",
        "cells that a spreadsheet would run",
        "text",
        ("shell/test_output_show.py::test_cells_that_a_spreadsheet_would_run_are_text",),
    ),
    Fault(
        "S8",
        "escape sequences in names and texts",
        "shown, never obeyed",
        (
            "shell/test_output_show.py::test_whatever_names_say_the_table_has_its_lines",
            "shell/test_output_show.py::test_colour_is_only_ours",
        ),
    ),
    Fault(
        "S9",
        "a key in the environment, headers, addresses, echoes",
        "seen nowhere",
        (
            f"{OPENAI}test_the_key_is_sent_and_seen_nowhere_else",
            f"{OPENAI}test_secrets_of_an_address_are_used_and_seen_nowhere_else",
            f"{OPENAI}test_an_echoed_key_is_hidden_however_it_is_spelled",
        ),
    ),
    Fault(
        "S10",
        "answer logs and partials by an attacker",
        "no code runs, nothing is made up",
        (
            f"{LOG}test_another_file_is_refused_and_left_alone",
            f"{LOG}test_an_intact_line_of_another_shape_is_named",
            f"{CRASH}::test_no_damage_makes_an_answer_that_was_never_written",
        ),
    ),
    Fault(
        "S11", "a key over plain http to another host", "refused", (f"{OPENAI}test_what_could_be_overheard_is_refused",)
    ),
    Fault(
        "S12",
        "data files outside the folders of a task, by path, link, address and chain",
        "refused with what to type",
        ("shell/test_confined_data.py",),
    ),
    Fault(
        "S13",
        "a credential in 24 places, in replies, errors, children and core dumps",
        "found in no file, message or traceback",
        ("shell/test_canary.py",),
    ),
    Fault(
        "S14",
        "900 MB of newlines in a gz, 500,000 keys of YAML, Parquet that unfolds, texts that grow",
        "refused while they are read",
        (
            "shell/test_unpacked_sizes.py",
            "shell/test_partial_faults.py::test_a_bomb_is_refused_before_it_fills_the_memory",
        ),
    ),
    Fault(
        "S15",
        "partials edited at random, of a log that changed",
        "named, never a traceback",
        ("shell/test_partial_faults.py",),
    ),
    Fault(
        "S16",
        "requests to the viewer without its token, of other origins, to rebound names, to write",
        "refused, and nothing told",
        (
            f"{VIEW}test_nothing_is_told_without_the_token",
            f"{VIEW}test_another_host_is_refused_as_of_a_rebound_name",
            f"{VIEW}test_pages_of_other_origins_are_refused",
            f"{VIEW}test_there_is_nothing_but_to_read",
            f"{VIEW}test_no_other_machine_can_be_served",
        ),
    ),
    Fault(
        "S17",
        "paths in requests to the viewer; links, pipes, broken runs and hostile names in its folder",
        "no file but the runs', no markup, a reason for each",
        (
            f"{VIEW}test_no_path_of_a_request_reaches_the_file_system",
            f"{VIEW}test_links_lead_nowhere",
            f"{VIEW}test_hostile_names_are_texts",
            f"{VIEW}test_a_broken_run_is_a_row_with_its_reason",
        ),
    ),
    Fault(
        "S18",
        "slow, many and oversized requests to the viewer, and nonsense",
        "others are answered, the server goes on",
        (f"{VIEW}test_slow_clients_hold_up_nobody_and_are_few", f"{VIEW}test_a_request_has_a_largest_size"),
    ),
)
