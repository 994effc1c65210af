"""Recorded answers: found by what was asked, never guessed."""

from __future__ import annotations

import gzip
import json
import math
from itertools import permutations
from pathlib import Path

import pytest

from evalcore.core.records.document import digest_request, request_key
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Reply, Request, Rolling
from evalcore.shell.answerlog.writer import open_log
from evalcore.shell.logs.lm_eval.requests import read_exchanges
from evalcore.shell.models.dummy import BACKEND as DUMMY
from evalcore.shell.models.model import OTHER_OPTIONS, Backend, Model, Question
from evalcore.shell.models.replay import BACKEND as REPLAY
from evalcore.shell.output.terminal.progress import UNSEEN
from evalcore.shell.run.ask import ask_agenda
from evalcore.shell.run.questions.agenda import Agenda, Item

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "lmeval_raw_logs"

GENERATE = Generate("2 + 2 =", {"until": ["\n"], "temperature": 0.0})  # type: ignore[arg-type]
ASKED: list[tuple[Request, list[Reply]]] = [
    (GENERATE, [" 4", " 5"]),
    (LogLikelihood("a", " b"), [Likelihood(-1.5, True, 2)]),
    (LogLikelihood("a", " c"), [Likelihood(-math.inf, False, 1)]),
    (Rolling("a text"), [-12.25]),
    (Generate("fails"), [Failure("time-out")]),
]


def replies(model: Model, *questions: Question) -> list[Reply]:
    heard = sorted(model.ask(questions))
    assert [one.at for one in heard] == list(range(len(questions)))
    return [one.reply for one in heard]


def write_log(path: Path, model: str = "m@1", asked: list[tuple[Request, list[Reply]]] = ASKED) -> Path:
    with open_log(path, model) as log:
        for request, given in asked:
            for repeat, reply in enumerate(given):
                log.append(request_key(model, request, {}, repeat), digest_request(request), repeat, reply, "stop")
    return path


def test_an_answer_log_is_replayed_whoever_asks(tmp_path: Path) -> None:
    model = REPLAY.open({"path": str(write_log(tmp_path / "answers.jsonl"))})
    assert model.recorded
    for request, given in ASKED:
        assert replies(model, *(Question(request, n) for n in range(len(given)))) == given
    assert [one.finish for one in model.ask([Question(GENERATE)])] == ["stop"]


def test_no_answer_is_a_failure_and_never_a_guess(tmp_path: Path) -> None:
    model = REPLAY.open({"path": str(write_log(tmp_path / "answers.jsonl"))})
    unknown = [
        Question(GENERATE, 2),
        Question(Generate("2 + 2 =")),
        Question(LogLikelihood("a ", "b")),
        Question(Rolling("a")),
        Question(LogLikelihood("a", " b"), 1),
    ]
    for reply in replies(model, *unknown):
        assert isinstance(reply, Failure)
        assert reply.reason.startswith("no recorded answer for this request in answers.jsonl")


def test_where_nothing_fits_the_failure_says_what_may_differ(tmp_path: Path) -> None:
    path = write_log(tmp_path / "answers.jsonl")
    model = REPLAY.open({"path": str(path)})
    first, second = heard_in_a_run(model, Generate("other"), Generate("prompts"))
    assert first == second
    assert "of its 6 answers none to any question of this run: same num_fewshot, seed, chat" in str(first)
    assert "num_fewshot" not in str(heard_in_a_run(model, Generate("other"), GENERATE)[0])
    empty = REPLAY.open({"path": str(write_log(tmp_path / "empty.jsonl", asked=[]))})
    assert "it holds no answers at all" in str(heard_in_a_run(empty, GENERATE)[0])


def heard_in_a_run(model: Model, *requests: Request) -> list[Reply]:
    items = {str(n): Item(str(n), Question(request)) for n, request in enumerate(requests)}
    return list(ask_agenda(model, Agenda(items, {}), Path(), UNSEEN).replies.values())


def test_a_recording_is_identified_without_its_answers(tmp_path: Path) -> None:
    path = {"path": str(write_log(tmp_path / "answers.jsonl"))}
    assert REPLAY.identify is not None
    known, opened = REPLAY.identify(path), REPLAY.open(path)
    assert (known.identity, known.recorded, known.chat) == (opened.identity, opened.recorded, opened.chat)
    with pytest.raises(EvalError, match="were not read"):
        list(known.ask([Question(GENERATE)]))


def test_a_whole_text_has_a_plain_number_also_where_a_likelihood_was_recorded(tmp_path: Path) -> None:
    asked: list[tuple[Request, list[Reply]]] = [(Rolling("a text"), [Likelihood(-12.25, False, 3), (-3.5, True)])]
    model = REPLAY.open({"path": str(write_log(tmp_path / "answers.jsonl", asked=asked))})
    found = replies(model, Question(Rolling("a text")), Question(Rolling("a text"), 1))
    assert found == [-12.25, -3.5]
    assert [type(one) for one in found] == [float, float]


def test_identity_is_the_content(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    one = REPLAY.open({"path": str(write_log(tmp_path / "answers.jsonl"))}).identity
    other = REPLAY.open({"path": str(write_log(tmp_path / "x" / "b.jsonl"))}).identity
    assert one == other
    write_log(tmp_path / "answers.jsonl", asked=[(Generate("new"), ["x"])])
    assert REPLAY.open({"path": str(tmp_path / "answers.jsonl")}).identity != one


def test_several_models_in_one_log(tmp_path: Path) -> None:
    path = str(write_log(tmp_path / "answers.jsonl", "first@1", [(GENERATE, ["one"])]))
    write_log(tmp_path / "answers.jsonl", "second@1", [(GENERATE, ["two"])])
    with pytest.raises(EvalError, match=r"several models; pick one .* first@1; second@1"):
        REPLAY.open({"path": path})
    assert replies(REPLAY.open({"path": path, "model": "first"}), Question(GENERATE)) == ["one"]
    assert replies(REPLAY.open({"path": path, "model": "second@1"}), Question(GENERATE)) == ["two"]
    with pytest.raises(EvalError, match="unknown model 'frst@1'; did you mean 'first@1'"):
        REPLAY.open({"path": path, "model": "frst@1"})


def test_damage_is_said(tmp_path: Path) -> None:
    path = write_log(tmp_path / "answers.jsonl")
    path.write_bytes(path.read_bytes().replace(b" 5", b" 6"))
    model = REPLAY.open({"path": str(path)})
    assert "answers.jsonl:4: damaged line" in model.warnings[0]
    first, second = replies(model, Question(GENERATE), Question(GENERATE, 1))
    assert first == " 4"
    assert isinstance(second, Failure)


# --- lm-eval's sample logs -------------------------------------------------------------------------------------

OPTIONS = {"until": ["\n"], "temperature": 0.0}
ON_DISK = [
    {"arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": OPTIONS}}, "resps": [[" 4", " 5"]], "filter": "a"},
    {"arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": OPTIONS}}, "resps": [[" 4", " 5"]], "filter": "b"},
    {
        "arguments": {f"gen_args_{n}": {"arg_0": "a", "arg_1": f" {n}"} for n in (10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9)},
        "resps": [[[f"-{n}.5", "True" if n == 1 else "False"]] for n in range(11)],
    },
    {"arguments": {"gen_args_0": {"arg_0": "a text"}}, "resps": [["-12.25"]]},
    {"arguments": {"gen_args_0": {"arg_0": "lost", "arg_1": {}}}, "resps": [[None, "kept"]]},
]
LISTED = [
    {"arguments": [["2 + 2 =", OPTIONS]], "resps": [[" 4", " 5"]]},
    {"arguments": [["a", f" {n}"] for n in range(11)], "resps": [[[-n - 0.5, n == 1]] for n in range(11)]},
    {"arguments": ["a text"], "resps": [[-12.25]]},
    {"arguments": ["lost", {}], "resps": [[None, "kept"]]},
]


def write_samples(path: Path, rows: list[dict[str, object]]) -> Path:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("rows", [ON_DISK, LISTED], ids=["on disk", "listed"])
@pytest.mark.parametrize("name", ["samples_t_2026.jsonl", "samples_t.jsonl.gz"])
def test_sample_logs(tmp_path: Path, rows: list[dict[str, object]], name: str) -> None:
    model = REPLAY.open({"path": str(write_samples(tmp_path / name, rows))})
    assert replies(model, Question(GENERATE), Question(GENERATE, 1)) == [" 4", " 5"]
    for n in range(11):
        assert replies(model, Question(LogLikelihood("a", f" {n}"))) == [Likelihood(-n - 0.5, n == 1)]
    assert replies(model, Question(Rolling("a text"))) == [-12.25]
    lost, kept = replies(model, Question(Generate("lost")), Question(Generate("lost"), 1))
    assert isinstance(lost, Failure)
    assert kept == "kept"


def test_other_options_are_counted_and_only_taken_if_there_is_no_choice(tmp_path: Path) -> None:
    path = write_samples(tmp_path / "samples_t.jsonl", ON_DISK[:1])
    model = REPLAY.open({"path": str(path)})
    heard = list(model.ask([Question(Generate("2 + 2 =")), Question(GENERATE)]))
    assert [one.reply for one in heard] == [" 4", " 4"]
    assert [one.finish == OTHER_OPTIONS for one in heard] == [True, False]
    write_samples(path, [*ON_DISK[:1], {"arguments": [["2 + 2 =", {"until": ["x"]}]], "resps": [["other"]]}])
    assert isinstance(replies(REPLAY.open({"path": str(path)}), Question(Generate("2 + 2 =")))[0], Failure)


def test_sample_logs_are_matched_as_text_and_a_changed_prompt_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalcore.shell.models.replay.digest_request", None)  # nothing is hashed
    model = REPLAY.open({"path": str(write_samples(tmp_path / "samples_t.jsonl", ON_DISK))})
    assert replies(model, Question(GENERATE, digest="other"), Question(GENERATE, 1)) == [" 4", " 5"]
    changed = (
        Generate("2 + 2 = ", GENERATE.options),
        LogLikelihood("a ", "1"),
        LogLikelihood("b", " 1"),
        Rolling("text"),
    )
    assert all(isinstance(one, Failure) for one in replies(model, *map(Question, changed)))
    assert isinstance(replies(model, Question(GENERATE, 2))[0], Failure)


def test_sample_logs_beside_an_answer_log_are_matched_by_digest(tmp_path: Path) -> None:
    samples = write_samples(tmp_path / "samples_t.jsonl", ON_DISK[:1])
    log = write_log(tmp_path / "answers.jsonl", asked=[(GENERATE, [" 9"]), (Generate("q"), ["from log"])])
    model = REPLAY.open({"paths": [str(samples), str(log)]})
    assert "1 questions have several recorded answers" in model.warnings[0]
    asked = Question(GENERATE), Question(GENERATE, 1), Question(Generate("q"))
    assert replies(model, *asked) == [" 9", " 5", "from log"]


def test_several_answers_to_one_question_are_counted(tmp_path: Path) -> None:
    write_samples(tmp_path / "samples_t_1.jsonl", ON_DISK[:1])
    write_samples(tmp_path / "samples_t_2.jsonl", [{**ON_DISK[0], "resps": [[" 4", " 7"]]}])
    model = REPLAY.open({"path": str(tmp_path)})
    assert "1 questions have several recorded answers; the last one counts" in model.warnings[0]
    assert replies(model, Question(GENERATE), Question(GENERATE, 1)) == [" 4", " 7"]


def test_folders_globs_and_lists(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_samples(tmp_path / "run" / "samples_t.jsonl", [{"arguments": ["q", {}], "resps": [["from samples"]]}])
    for given in (str(tmp_path), str(tmp_path / "*" / "samples_*"), [str(tmp_path / "run" / "samples_t.jsonl")]):
        model = REPLAY.open({"paths": given} if isinstance(given, list) else {"path": given})
        assert replies(model, Question(Generate("q"))) == ["from samples"]
    write_log(tmp_path / "run" / "answers.jsonl", asked=[(Generate("q"), ["from log"])])
    assert replies(REPLAY.open({"path": str(tmp_path / "run")}), Question(Generate("q"))) == ["from log"]


RESULTS = json.dumps({"results": {"t": {"acc,none": 0.5}}}, indent=2)


def test_what_a_glob_catches_by_accident_is_left_out_and_named(tmp_path: Path) -> None:
    write_samples(tmp_path / "samples_t.jsonl", [{"arguments": ["q", {}], "resps": [["from samples"]]}])
    (tmp_path / "results_2026.json").write_text(RESULTS)
    (tmp_path / "notes.txt").write_text("not JSON at all")
    model = REPLAY.open({"path": str(tmp_path / "*")})
    assert replies(model, Question(Generate("q"))) == ["from samples"]
    assert [warning.partition(":1: expected")[0] for warning in model.warnings] == [
        str(tmp_path / "notes.txt"),
        str(tmp_path / "results_2026.json"),
    ]
    assert model.identity == REPLAY.open({"path": str(tmp_path / "samples_t.jsonl")}).identity


@pytest.mark.parametrize("name", ["results_2026.json", "r*.json", "*.json"])
def test_where_no_file_is_a_recording_that_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "results_2026.json").write_text(RESULTS)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EvalError, match=r"json:1: expected a row of a sample log .* or an answer log") as raised:
        REPLAY.open({"path": str(tmp_path / name)})
    assert ("nor are the other 1 files" in str(raised.value)) == (name == "*.json")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"a": 1}], "samples_t.jsonl:1: expected a row of a sample log"),
        ([7], "samples_t.jsonl:1: expected a row"),
        (
            [ON_DISK[0], {"arguments": ["a", " b"], "resps": [[[-1, True]], [[-2, False]]]}],
            ":2: expected replies to each of 1",
        ),
        ([{"arguments": [["a", " b"]], "resps": [["text"]]}], ":1: expected a reply to a LogLikelihood, got 'text'"),
        ([{"arguments": [["a", " b"]], "resps": [[["x", "True"]]]}], ":1: expected a reply to a LogLikelihood"),
        ([{"arguments": [["a", " b"]], "resps": [[[-1.0, "maybe"]]]}], ":1: expected a reply to a LogLikelihood"),
        ([{"arguments": [["a", " b"]], "resps": [[[-1.0, []]]]}], ":1: expected a reply to a LogLikelihood"),
        ([{"arguments": [["a", {}]], "resps": [[[1]]]}], ":1: expected a reply to a Generate"),
        ([{"arguments": [["a", 7]], "resps": [["x"]]}], ":1: expected a prompt and options"),
        ([{"arguments": None, "resps": [["x"]]}], ":1: expected a prompt and options"),
    ],
)
def test_bad_sample_logs(tmp_path: Path, rows: list[dict[str, object]], said: str) -> None:
    path = write_samples(tmp_path / "samples_t.jsonl", rows)
    with pytest.raises(EvalError, match=said) as raised:
        REPLAY.open({"path": str(path)})
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("arguments", [{}, {"path": 7}, {"paths": []}, {"pth": "x"}, {"path": "no/such"}])
def test_bad_arguments(arguments: dict[str, object]) -> None:
    with pytest.raises(
        EvalError, match=r"expected model_args with a path|did you mean 'path'|no recorded answers there"
    ):
        REPLAY.open(arguments)


@pytest.mark.parametrize("backend", [REPLAY, DUMMY], ids=["replay", "dummy"])
def test_of_several_unknown_arguments_always_the_same_is_named(backend: Backend) -> None:
    for names in permutations(["zeta", "alpha", "mu"]):
        with pytest.raises(EvalError, match="argument 'alpha'"):
            backend.open(dict.fromkeys(names))


@pytest.mark.parametrize("name", ["asdiv_2024", "eqbench_2025", "math_perturbed_2026", "negotiationtom_2026"])
def test_real_logs_answer_their_own_requests(name: str) -> None:
    files = sorted((SHARED / name).glob("samples_*.jsonl"))
    if not files:
        pytest.skip(f"no recorded logs in {SHARED / name}")
    model = REPLAY.open({"paths": [str(path) for path in files]})
    asked: list[tuple[Question, object]] = []
    for path in files:
        for line in path.read_bytes().split(b"\n")[:-1]:
            raw = [one for replies in json.loads(line)["resps"] for one in replies]
            requests = [(request, n) for request, heard in read_exchanges(line, "x") for n in range(len(heard))]
            asked += [(Question(*one), given) for one, given in zip(requests, raw, strict=True)]
    got = replies(model, *(question for question, _ in asked))
    spelled = [[str(one.value), str(one.greedy)] if isinstance(one, Likelihood) else one for one in got]
    assert len(got) >= 10
    assert spelled == [given for _, given in asked]


# --- dummy ---------------------------------------------------------------------------------------------------------


def test_dummy_is_the_same_every_time_and_differs_by_seed_and_request() -> None:
    questions = [Question(LogLikelihood("a", f" {n}")) for n in range(50)] + [
        Question(Rolling("x")),
        Question(Generate("a b c")),
    ]
    first, again, other = (replies(DUMMY.open(given), *questions) for given in ({}, {"seed": 0}, {"seed": 1}))
    assert first == again != other
    values = [one.value for one in first[:50]]  # type: ignore[union-attr]
    assert len(set(values)) == 50
    assert all(value < 0 for value in values)
    assert isinstance(first[50], float)
    assert isinstance(first[51], str)


def test_dummy_repeats_differ_and_text_is_fixed() -> None:
    questions = [Question(Generate("tell me a number between one and a hundred"), n) for n in range(20)]
    assert len(set(replies(DUMMY.open({}), *questions))) > 5
    assert set(replies(DUMMY.open({"text": "lol"}), *questions)) == {"lol"}
    assert DUMMY.open({"text": "lol"}).identity != DUMMY.open({}).identity
    with pytest.raises(EvalError, match="unknown dummy argument 'sed'; did you mean 'seed'"):
        DUMMY.open({"sed": 1})
    with pytest.raises(EvalError, match="expected an integer as seed"):
        DUMMY.open({"seed": "x"})
