"""The index: names as lm-eval gives them, includes kept inside the folder, bad files listed and never fatal."""

import os
from pathlib import Path

import pytest

from evalcore import EvalError
from evalcore.shell.config.yaml_file import FunctionTag
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.index import find_library, read_entry

QA = "dataset_path: json\noutput_type: generate_until\n"


def write(root: Path, **files: str) -> Path:
    """Files by name: ``__`` is a slash, and ``.yaml`` is added unless the name says ``_yaml``."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") if name.endswith("_yaml") else name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def told(built, kind=None):
    return [str(one) for one in built.problems if kind in (None, one.kind)]


def test_tasks_groups_tags_classes_and_templates(tmp_path):
    write(
        tmp_path,
        a=f"task: a\ntag: [t, u]\n{QA}",
        b=f"task: b\ntag: t\n{QA}",
        g="group: g\ntask: [a, t]\n",
        p="task: p\nclass: !function mod.Task\n",
        template=QA,
        deep__er__c="include: ../../template.yaml\ntask: c\n",
    )
    write(tmp_path / "__pycache__", hidden="task: hidden\n")
    built = build_index([tmp_path])
    kinds = {name: entry.kind for name, entry in built.entries.items()}
    assert kinds == {"a": "task", "t": "tag", "u": "tag", "b": "task", "c": "task", "g": "group", "p": "py_task"}
    assert built.entries["t"].tags == ("a", "b")
    assert read_entry(built, "c") == {"dataset_path": "json", "output_type": "generate_until", "task": "c"}
    assert not built.problems


def test_includes_merge_in_order_and_the_files_own_keys_win(tmp_path):
    write(
        tmp_path,
        base_yaml="description: base\nnum_fewshot: 1\ntask_list: [x]\nprocess_docs: !function utils.f\n",
        more__other_yaml="include: ../base_yaml\nnum_fewshot: 2\ndoc_to_text: !function utils.g\n",
        a="include:\n  - base_yaml\n  - more/other_yaml\ntask: a\ndescription: own\n",
    )
    config = read_entry(build_index([tmp_path]), "a")
    assert config == {
        "description": "own",
        "num_fewshot": 2,
        "process_docs": FunctionTag("utils.f", 4, str(tmp_path / "base_yaml")),
        "doc_to_text": FunctionTag("utils.g", 3, str(tmp_path / "more/other_yaml")),
        "task": "a",
    }


def test_a_name_may_come_from_an_include(tmp_path):
    write(
        tmp_path, t_yaml="tag: t\ngroup: g\n", g="include: t_yaml\ntask: []\n", a="include: t_yaml\nclass: x\ntask: a"
    )
    kinds = {name: entry.kind for name, entry in build_index([tmp_path]).entries.items()}
    assert kinds == {"a": "py_task", "t": "tag", "g": "group"}


def test_a_diamond_is_fine_and_a_cycle_shows_its_chain(tmp_path):
    write(
        tmp_path,
        top_yaml=QA,
        left_yaml="include: top_yaml\n",
        right_yaml="include: top_yaml\nrepeats: 2\n",
        diamond="include: [left_yaml, right_yaml]\ntask: diamond\n",
        one="task: one\ninclude: two.yaml\n",
        two="task: two\ninclude: three_yaml\n",
        three_yaml="include: one.yaml\n",
        self="task: self\ninclude: self.yaml\n",
    )
    built = build_index([tmp_path])
    assert list(built.entries) == ["diamond"]
    assert read_entry(built, "diamond")["repeats"] == 2
    problems = told(built, "include")
    assert f"{tmp_path}/self.yaml:2: files include each other: self.yaml -> self.yaml" in problems
    assert any("one.yaml -> two.yaml -> three_yaml -> one.yaml" in one for one in problems)
    assert len(problems) == 2  # each cycle once


def test_includes_stay_inside_the_folder(tmp_path):
    outside = write(tmp_path / "outside", secret_yaml="description: secret\n", task="task: leaked\n")
    root = write(
        tmp_path / "root",
        absolute=f"task: absolute\ninclude: {outside}/secret_yaml\n",
        up="task: up\ninclude: ../outside/secret_yaml\n",
        link="task: link\ninclude: linked_yaml\n",
        folder="task: folder\ninclude: linked/secret_yaml\n",
        pipe="task: pipe\ninclude: pipe_yaml\n",
        device="task: device\ninclude: /dev/zero\n",
        missing="task: missing\ninclude: no_such_yaml\n",
        itself="task: itself\ninclude: .\n",
        number="task: number\ninclude: 5\n",
        fine="task: fine\ninclude: ../root/inner_yaml\n",
        inner_yaml=QA,
    )
    (root / "linked_yaml").symlink_to(outside / "secret_yaml")
    (root / "linked").symlink_to(outside)
    (root / "linked.yaml").symlink_to(outside / "task.yaml")
    os.mkfifo(root / "pipe_yaml")
    os.mkfifo(root / "pipe2.yaml")
    built = build_index([root])
    assert list(built.entries) == ["fine"]
    text = "\n".join(told(built))
    assert "secret" not in text.replace("secret_yaml", "")
    for name in ("absolute", "up", "link", "folder", "device"):
        assert f"{root}/{name}.yaml:2: cannot include" in text
        line = next(one for one in told(built) if f"/{name}.yaml:2" in one)
        assert "lies outside" in line, line
    assert "pipe.yaml:2: cannot include" in text
    assert "expected a file, found a folder, pipe or device" in text
    assert f"{root}/missing.yaml:2: cannot include {root}/no_such_yaml: No such file" in text
    assert f"{root}/number.yaml:2: expected include: a file or a list of files, got 5" in text
    assert f"{root}/linked.yaml: lies outside" in text


def test_a_link_inside_the_folder_is_followed(tmp_path):
    write(tmp_path, a=f"task: a\n{QA}", real__t_yaml="repeats: 3\n", b="task: b\ninclude: link_yaml\n")
    (tmp_path / "link_yaml").symlink_to("real/t_yaml")
    (tmp_path / "again.yaml").symlink_to("a.yaml")
    built = build_index([tmp_path])
    assert read_entry(built, "b")["repeats"] == 3
    assert [one.kind for one in built.problems] == ["duplicate_name"]


@pytest.mark.parametrize(
    "content",
    [
        b"task: [",
        b"\xff\xfe\x00\x01",
        b"- a\n- b",
        b"",
        b"task: a\ntask: b",
        b"task: [a]",
        b"group: 5",
        b"a: &x 1\nb: *x",
    ],
)
def test_bad_files_are_listed_with_their_place_and_the_rest_is_indexed(tmp_path, content):
    write(tmp_path, good=f"task: good\n{QA}")
    (tmp_path / "bad.yaml").write_bytes(content)
    built = build_index([tmp_path])
    assert list(built.entries) == ["good"]
    assert all(one.where.startswith(f"{tmp_path}/bad.yaml") and one.level == "error" for one in built.problems)
    assert len(built.problems) == 1


def test_the_first_of_a_name_counts_and_the_second_is_told_with_both_places(tmp_path):
    write(tmp_path, a="task: x\nrepeats: 1\n", b="repeats: 2\ntask: x\n")
    built = build_index([tmp_path])
    assert read_entry(built, "x")["repeats"] == 1
    assert told(built) == [f"{tmp_path}/b.yaml:2: task 'x' is already defined in {tmp_path}/a.yaml:1, which counts"]
    assert built.problems[0].level == "error"


def test_a_later_folder_overrides_an_earlier_one_with_a_warning(tmp_path):
    one, two = write(tmp_path / "one", a="task: x\nrepeats: 1\n"), write(tmp_path / "two", b="\ntask: x\nrepeats: 2\n")
    built = build_index([one, two])
    assert read_entry(built, "x")["repeats"] == 2
    assert told(built) == [f"{two}/b.yaml:2: task 'x' overrides the task in {one}/a.yaml:1"]
    assert read_entry(build_index([two, one]), "x")["repeats"] == 1
    assert not build_index([one, one]).problems


def test_duplicate_keys_are_warnings_in_a_shipped_library(tmp_path):
    text = "task: x\nrepeats: 1\nrepeats: 2\n"
    library = write(tmp_path / "site-packages/some/tasks", x=text)
    built = build_index([library])
    assert read_entry(built, "x")["repeats"] == 2
    assert [one.level for one in built.problems] == ["warning"]
    assert not build_index([write(tmp_path / "mine", x=text)]).entries


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(EvalError, match="expected a folder of task files"):
            build_index([path])


def test_a_tag_that_is_also_a_name_stays_the_name(tmp_path):
    """As in lm-eval: the name that comes first counts, and a later task of a tag's name is a duplicate."""
    write(tmp_path, a="task: a\ntag: b\n", b="task: b\n", c="task: c\ntag: a\n")
    built = build_index([tmp_path])
    assert {name: entry.kind for name, entry in built.entries.items()} == {"a": "task", "b": "tag", "c": "task"}


def test_values_survive_packing(tmp_path):
    text = (
        "task: a\nday: 2024-02-29\nwhen: 2001-12-14 21:59:43\nbig: 123456789012345678901234567890\n1: {2: [.inf, ~]}\n"
    )
    write(tmp_path, a=text)
    import yaml

    expected = {str(key): value for key, value in yaml.load(text, Loader=yaml.CSafeLoader).items()}
    assert read_entry(build_index([tmp_path]), "a") == expected


# --- includes from one indexed folder into another ----------------------------------------------------------------


def test_an_absolute_include_may_lead_into_another_indexed_folder(tmp_path):
    """Also through a link, and on to what the included file includes; anywhere else it is refused, with its line."""
    library = write(tmp_path / "library", base_yaml=QA, deep__more_yaml="include: ../base_yaml\nrepeats: 2\n")
    outside = write(tmp_path / "outside", secret_yaml="description: secret\n")
    (tmp_path / "link").symlink_to(library)
    (library / "leak_yaml").symlink_to(outside / "secret_yaml")
    mine = write(
        tmp_path / "mine",
        a=f"task: a\ninclude: {library}/deep/more_yaml\n",
        b=f"task: b\ninclude: {tmp_path}/link/base_yaml\n",
        c=f"task: c\ninclude: {outside}/secret_yaml\n",
        d=f"task: d\ninclude: {library}/leak_yaml\n",
        e=f"task: e\ninclude: {library}/../outside/secret_yaml\n",
    )
    built = build_index([library, mine])
    assert sorted(built.entries) == ["a", "b"]
    assert read_entry(built, "a") == {
        "dataset_path": "json",
        "output_type": "generate_until",
        "repeats": 2,
        "task": "a",
    }
    for name in "cde":
        line = next(one for one in told(built) if f"/{name}.yaml:2" in one)
        assert "cannot include" in line
        assert f"lies outside {mine}, {library}, and files are only read inside these" in line
    alone = build_index([mine])
    assert not alone.entries
    assert all("lies outside" in one for one in told(alone))


def test_the_index_is_kept_for_the_folders_it_was_built_beside(tmp_path):
    """What may be included depends on the other folders: an index kept beside one does not serve beside another."""
    library, mine = write(tmp_path / "library", base_yaml=QA), tmp_path / "mine"
    write(mine, a=f"task: a\ninclude: {library}/base_yaml\n")
    for file in (*library.iterdir(), *mine.iterdir()):
        os.utime(file, (1, 1))
    for folders, names in (([library, mine], ["a"]), ([mine], []), ([library, mine], ["a"])):
        assert list(build_index(folders, cache=tmp_path / "cache").entries) == names
    write(library, base_yaml="dataset_path: csv\n")
    assert read_entry(build_index([library, mine], cache=tmp_path / "cache"), "a")["dataset_path"] == "csv"


def test_an_include_into_the_installed_library_gives_what_lm_eval_gives(tmp_path):
    """With ``!function`` beside the included file, which needs trust as ever."""
    pytest.importorskip("lm_eval")
    from lm_eval.tasks._yaml_loader import load_yaml

    from evalcore.shell.tasks.resolution import resolve_specs
    from evalcore.shell.tasks.trust import load_functions, read_trust

    library = find_library()
    shipped = library / "gsm8k/gsm8k.yaml"
    coded = library / "truthfulqa/truthfulqa_mc2.yaml"
    write(
        tmp_path,
        mine=f"include: {shipped}\ntask: my_gsm8k\nnum_fewshot: 3\n",
        code=f"include: {coded}\ntask: my_truth\n",
    )
    index = build_index([library, tmp_path])
    theirs = load_yaml(tmp_path / "mine.yaml", resolve_func=False)
    assert read_entry(index, "my_gsm8k") == {key: value for key, value in theirs.items() if key != "include"}
    assert theirs["dataset_path"] == "openai/gsm8k"
    config = resolve_specs(index, "my_truth").tasks["my_truth"]
    with pytest.raises(EvalError, match=r"would run code that is not trusted:\n  .*truthfulqa/utils\.py"):
        load_functions(config, read_trust([]))
    with pytest.raises(EvalError, match="not trusted"):  # the including folder is not the code's
        load_functions(config, read_trust([str(tmp_path)]))
    assert callable(load_functions(config, read_trust([str(coded.parent)]))["process_results"])
    single = resolve_specs(index, str(tmp_path / "mine.yaml"))
    assert single.tasks["my_gsm8k"]["num_fewshot"] == 3
    write(tmp_path / "elsewhere", x=f"include: {shipped}\ntask: x\n")
    assert resolve_specs(build_index([library]), str(tmp_path / "elsewhere/x.yaml")).tasks["x"]["repeats"] == 1
