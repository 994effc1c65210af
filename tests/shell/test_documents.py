"""YAML is read as data, with the line of everything that is odd."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from evalcore import EvalError
from evalcore.shell.config.documents import FunctionTag, read_yaml


def test_a_duplicate_key_is_a_located_error_or_a_warning():
    text = "task: a\nmetric_list:\n  - metric: acc\n    metric: acc_norm\n"
    with pytest.raises(EvalError, match=r"t\.yaml:4: the key 'metric' is given twice, first on line 3"):
        read_yaml(text, "t.yaml")
    loaded = read_yaml(text, "t.yaml", duplicates="warn")
    assert loaded.value == {"task": "a", "metric_list": [{"metric": "acc_norm"}]}
    assert len(loaded.warnings) == 1


def test_functions_are_names_and_nothing_runs():
    assert read_yaml("f: !function utils.f", "t.yaml").value == {"f": FunctionTag("utils.f", 1)}
    for text in ("!!python/object/apply:os.getcwd []", "a: !!python/name:os.getcwd", "a: !unknown 1"):
        with pytest.raises(EvalError, match=r"t\.yaml:1: the tag .* is not read"):
            read_yaml(text, "t.yaml")


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\tx: 1", "? [1, 2]\n: 3", "a: &x [1]\nb: *x"])
def test_what_is_not_read_is_said_with_its_line(text):
    with pytest.raises(EvalError, match=r"t\.yaml:\d+: "):
        read_yaml(text, "t.yaml")


def test_lm_evals_own_files_read_as_pyyaml_reads_them():
    """Its library has files that give a key twice; ours says which, with the line (E44)."""
    spec = find_spec("lm_eval")
    if spec is None or spec.origin is None:
        pytest.skip("lm_eval is not installed")
    files = sorted((Path(spec.origin).parent / "tasks").rglob("*.yaml"))[::40]
    assert len(files) > 200

    class Plain(yaml.CSafeLoader):
        pass

    Plain.add_constructor("!function", lambda loader, node: FunctionTag(node.value, node.start_mark.line + 1))
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert read_yaml(text, file.name, duplicates="warn").value == yaml.load(text, Loader=Plain)
