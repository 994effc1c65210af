"""Writes every picture into docs/pictures."""

from bench.measure import ROOT
from bench.pictures.pictures import draw_pictures

for name, drawn in draw_pictures():
    (ROOT / "docs" / "pictures" / name).write_text(drawn, encoding="utf-8")
    print(name)
