"""Code runs only where it is trusted, and what runs is what was hashed."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from evalcore import EvalError
from evalcore.shell.config.yaml_file import FunctionTag
from evalcore.shell.tasks.code import FunctionRef, find_function, hash_code
from evalcore.shell.tasks.description import show_name
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.linter import check_tasks
from evalcore.shell.tasks.resolution import resolve_specs
from evalcore.shell.tasks.trust import Trust, load_functions, load_groups, read_trust

UTILS = (
    "from pathlib import Path\nPath(__file__).with_name('ran').write_text('')\ndef f(docs): return docs\nNUMBER = 5\n"
)


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "utils.py").write_text(UTILS)
    (tmp_path / "t_yaml").write_text("dataset_path: json\nprocess_docs: !function utils.f\n")
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / "other.py").write_text("def g(doc): return 'g'\ndef total(values, sizes): return 1.0\n")
    (sub / "a.yaml").write_text("task: a\ninclude: ../t_yaml\nmetric_list:\n  - metric: !function other.g\n")
    (sub / "g.yaml").write_text(
        "group: g\ntask: [a]\naggregate_metric_list: [{metric: g, aggregation: !function other.total}]\n"
    )
    return tmp_path


@pytest.fixture
def config(folder):
    return resolve_specs(build_index([folder]), "a").tasks["a"]


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_functions_are_found_beside_the_yaml_in_which_they_stand(folder, config):
    assert config["process_docs"] == FunctionRef(str(folder / "utils.py"), "f", digest(folder / "utils.py"))
    other = folder / "sub/other.py"
    assert config["metric_list"] == ({"metric": FunctionRef(str(other), "g", digest(other))},)
    assert hash_code(config) == {str(folder / "utils.py"): digest(folder / "utils.py"), str(other): digest(other)}


def test_nothing_runs_until_it_is_trusted(folder, config):
    known = build_index([folder])
    check_tasks(known)
    show_name(known, "a")
    with pytest.raises(EvalError) as refused:
        load_functions(config, Trust())
    text = str(refused.value)
    assert f"{folder}/utils.py: f" in text
    assert f"{folder}/sub/other.py: g" in text
    assert f"To run it: --trust {folder}/sub/other.py --trust {folder}/utils.py" in text
    with pytest.raises(EvalError):
        load_functions(config, read_trust([str(folder / "utils.py")]))
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("given", [["."], ["utils.py", "sub"], ["utils.py@", {"path": "sub/other.py", "sha256": ""}]])
def test_files_folders_and_hashes_are_trusted(folder, config, given):
    def absolute(one):
        if isinstance(one, dict):
            return {"path": str(folder / one["path"]), "sha256": digest(folder / one["path"])}
        path = folder / one.rstrip("@")
        return f"{path}@sha256:{digest(path)}" if one.endswith("@") else str(path)

    loaded = load_functions(config, read_trust(map(absolute, given)))
    assert loaded["process_docs"]([1]) == [1]
    assert loaded["metric_list"][0]["metric"](None) == "g"
    assert (folder / "ran").exists()
    assert loaded["dataset_path"] == "json"


def test_a_folder_is_not_its_namesakes(folder, config):
    namesakes = [Path(str(folder)[:-1]), Path(f"{folder}x"), folder / "su"]
    for one in namesakes:
        one.mkdir(exist_ok=True)
    with pytest.raises(EvalError, match="not trusted"):
        load_functions(config, read_trust(map(str, namesakes)))


def test_what_is_not_there_cannot_be_trusted(folder):
    with pytest.raises(EvalError, match="found nothing"):
        read_trust([str(folder / "nope.py")])


def test_a_pin_holds_against_a_trusted_folder_and_a_changed_file(folder, config):
    pin = {"path": str(folder / "utils.py"), "sha256": "0" * 64}
    with pytest.raises(EvalError, match="its content changed"):
        load_functions(config, read_trust([str(folder), pin]))
    (folder / "utils.py").write_text(UTILS + "# edited\n")
    with pytest.raises(EvalError, match="changed after it was hashed"):
        load_functions(config, read_trust([str(folder)]))


@pytest.mark.parametrize(
    "bad",
    [
        *("x@sha256:12", {"path": ".", "sha256": "0" * 64}, {"sha256": "0" * 64}, 5, "", {"path": "x", "y": 1}),
        *(f"{kind}:org/name@sha256:{'0' * 64}" for kind in ("dataset", "model")),  # a pin that nothing would keep
    ],
)
def test_trust_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(EvalError, match="at trust"):
        read_trust([bad])


def test_a_module_runs_once(folder, config):
    trust = read_trust([str(folder)])
    first, second = load_functions(config, trust), load_functions(config, trust)
    assert first["process_docs"] is second["process_docs"]


def test_what_is_not_a_function_or_cannot_run_is_told(folder):
    trust = read_trust([str(folder)])
    ref = FunctionRef(str(folder / "utils.py"), "NUMBER", digest(folder / "utils.py"))
    with pytest.raises(EvalError, match=r"expected a function 'NUMBER' in .*utils\.py, found 5"):
        load_functions({"task": "t", "f": ref}, trust)
    (folder / "broken.py").write_text("import no_such_module_at_all\n")
    broken = FunctionRef(str(folder / "broken.py"), "f", digest(folder / "broken.py"))
    with pytest.raises(EvalError, match=r"broken\.py cannot be run: ModuleNotFoundError: .*no_such_module_at_all"):
        load_functions({"task": "t", "f": broken}, trust)


def test_a_group_may_aggregate_by_a_function_of_its_own(folder):
    (tree,) = resolve_specs(build_index([folder]), "g").trees
    with pytest.raises(EvalError, match="not trusted"):
        load_groups([tree], Trust())
    with pytest.raises(EvalError, match="not trusted"):
        tree.metrics[0].aggregation([1.0], [1])
    (loaded,) = load_groups([tree], read_trust([str(folder)]))
    assert loaded.metrics[0].aggregation([0.5], [1]) == 1.0


def test_datasets_with_code_count_as_code_unless_the_data_is_local():
    config = {"task": "t", "dataset_path": "org/data", "dataset_kwargs": {"trust_remote_code": True}}
    with pytest.raises(EvalError, match="--trust dataset:org/data"):
        load_functions(config, Trust())
    assert load_functions(config, read_trust(["dataset:org/data"])) == config
    assert load_functions(config, Trust(), local_data=True) == config


def test_a_python_class_is_refused_clearly():
    with pytest.raises(EvalError, match="task 't' is a python class, which evalcore does not run"):
        load_functions({"task": "t", "class": FunctionRef("/x.py", "T", "")}, Trust(("/",)))


def test_a_module_is_found_without_importing_its_package(tmp_path, monkeypatch):
    package = tmp_path / "pack_of_tests"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "inner/mod.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ref = find_function(FunctionTag("pack_of_tests.inner.mod.f", 1, "/nowhere/t.yaml"))
    assert ref.path == str(package / "inner/mod.py")
    assert "pack_of_tests" not in sys.modules


def test_modules_of_a_package_can_use_their_own_imports(tmp_path, monkeypatch):
    tasks = tmp_path / "pack_with_tasks/tasks/mine"
    tasks.mkdir(parents=True)
    (tmp_path / "pack_with_tasks/__init__.py").write_text("")
    (tasks / "helper.py").write_text("WORD = 'helped'\n")
    (tasks / "utils.py").write_text(
        "from dataclasses import dataclass\nfrom .helper import WORD\nimport pack_with_tasks.tasks.mine.helper as again\n"
        "@dataclass\nclass Box:\n    word: str = WORD + again.WORD\ndef f(): return Box().word\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    ref = find_function(FunctionTag("utils.f", 1, str(tasks / "t.yaml")))
    loaded = load_functions({"task": "t", "f": ref}, read_trust([str(tasks)]))
    assert loaded["f"]() == "helpedhelped"


@pytest.mark.parametrize(
    "name", ["f", "../utils.f", "/etc/passwd.f", "utils.", ".f", "a b.c", "sys.exit", "no.such.module"]
)
def test_what_names_no_function_is_refused(tmp_path, name):
    with pytest.raises(EvalError, match=r"t\.yaml:3"):
        find_function(FunctionTag(name, 3, str(tmp_path / "t.yaml")))
