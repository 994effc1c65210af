"""The cache of an index: every change is seen, damage is noticed, and a second reading is not needed."""

import os
from pathlib import Path

import pytest

from evalcore.shell.tasks.library import cache
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.index import read_entry

QA = "dataset_path: json\noutput_type: generate_until\n"


def write(root: Path, **files: str) -> Path:
    """Files by name: ``__`` is a slash, and ``.yaml`` is added unless the name says ``_yaml``."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") if name.endswith("_yaml") else name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of tasks whose files count as old, a cache folder, and how often the folder was read."""
    monkeypatch.setattr(cache, "SETTLED_NS", -1_000_000_000)
    root = write(tmp_path / "root", a="task: a\ninclude: t_yaml\n", b="task: b\n", t_yaml="repeats: 1\n")
    for path in root.iterdir():  # a change within the same tick of the file system's clock is seen all the same
        os.utime(path, (0, 0))
    read = []
    real = cache.index_folder
    monkeypatch.setattr(cache, "index_folder", lambda path, *beside: read.append(path) or real(path, *beside))
    return root, tmp_path / "cache", read


def test_an_unchanged_folder_is_read_once_and_says_the_same(kept):
    root, folder, read = kept
    first, second = build_index([root], cache=folder), build_index([root], cache=folder)
    assert len(read) == 1
    assert (first.entries, first.problems, first.roots) == (second.entries, second.problems, second.roots)
    assert [read_entry(second, name) for name in second.entries] == [read_entry(first, name) for name in first.entries]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.yaml").write_text("task: a\ninclude: t_yaml\nrepeats: 5\n"),
        lambda root: (root / "t_yaml").write_text("repeats: 2\n"),
        lambda root: write(root, c="task: c\n"),
        lambda root: write(root, new__c="task: c\n"),
        lambda root: (root / "b.yaml").unlink(),
        lambda root: (root / "t_yaml").unlink(),
        lambda root: (root / "b.yaml").rename(root / "c.yaml"),
        lambda root: os.replace(_same_size_and_time(root), root / "b.yaml"),
    ],
)
def test_any_change_is_seen(kept, change):
    root, folder, read = kept
    build_index([root], cache=folder)
    change(root)
    again, fresh = build_index([root], cache=folder), build_index([root])
    assert (again.entries, again.problems) == (fresh.entries, fresh.problems)
    assert [read_entry(again, name) for name in again.entries] == [read_entry(fresh, name) for name in fresh.entries]
    assert len(read) == 3


def _same_size_and_time(root: Path) -> Path:
    old, new = (root / "b.yaml").stat(), root / "b.new"
    new.write_text("task: z\n")
    os.utime(new, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert new.stat().st_size == old.st_size
    return new


def test_an_include_that_appears_later_is_seen(kept):
    root, folder, read = kept
    write(root, d="task: d\ninclude: later_yaml\n", e="task: e\ninclude: other/later.yaml\n")
    for _ in range(2):
        assert not {"d", "e"} & set(build_index([root], cache=folder).entries)
    assert len(read) == 1
    write(root, later_yaml=QA)
    assert "d" in build_index([root], cache=folder).entries
    write(root, other__later=QA)
    assert "e" in build_index([root], cache=folder).entries


@pytest.mark.parametrize("damage", [b"", b"junk", None, "cut", "flip"])
def test_a_damaged_cache_is_built_anew(kept, damage):
    root, folder, read = kept
    expected = build_index([root], cache=folder).entries
    (file,) = folder.iterdir()
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[-20] ^= 1
    file.write_bytes(
        data[: len(data) // 2] if damage == "cut" else data if damage == "flip" else damage or b"\x00" * 99
    )
    assert build_index([root], cache=folder).entries == expected
    assert build_index([root], cache=folder).entries == expected
    assert len(read) == 2


def test_every_single_flipped_bit_of_a_cache_is_noticed(kept):
    root, folder, _ = kept
    expected = build_index([root], cache=folder)
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for at in range(0, len(good), 7):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        assert cache.load_index(folder, expected.roots) is None


def test_a_file_changed_a_moment_ago_is_not_kept(kept, monkeypatch):
    root, folder, read = kept
    monkeypatch.setattr(cache, "SETTLED_NS", 3600 * 10**9)  # an hour: however slow the machine, a moment is less
    build_index([root], cache=folder)
    build_index([root], cache=folder)
    assert len(read) == 2
    assert not folder.exists()


def test_a_cache_that_cannot_be_written_is_no_error(kept, tmp_path):
    root, _, read = kept
    (tmp_path / "file").write_text("")
    assert build_index([root], cache=tmp_path / "file").entries
    assert len(read) == 1
