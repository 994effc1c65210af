"""Gates as JUnit XML, which every CI system shows: a test case for each."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_text import tell_gate
from evalcore.shell.output.terminal.number_text import name_metric
from evalcore.shell.safety.replacement import replace_file
from evalcore.shell.safety.safe_text import visible


def render_junit(checked: Checked, *, seconds: float = 0.0) -> str:
    """The XML of a run's gates, each with a sentence that has its numbers.

    The attributes are those that pytest writes. Characters that XML cannot hold are written as escapes.

    >>> from evalcore.core.compare.gates import Gate
    >>> from evalcore.core.records.task import MetricKey
    >>> gate = Gate(kind="min", name="t", key=MetricKey("acc"), passed=False, verdict="below")
    >>> print(render_junit(Checked(run="new", gates=(gate,))).splitlines()[2].strip())
    <testsuite name="evalcore check" tests="1" failures="1" errors="0" skipped="0" time="0.000">
    """
    gates = checked.gates
    suite = Xml.Element(
        "testsuite",
        name="evalcore check",
        tests=str(len(gates)),
        failures=str(sum(gate.passed is False for gate in gates)),
        errors="0",
        skipped=str(sum(gate.passed is None for gate in gates)),
        time=f"{seconds:.3f}",
    )
    for gate in gates:
        sentence = visible(tell_gate(gate, checked.confidence, shown=checked.shown))
        name = " ".join(
            dict.fromkeys([gate.name, name_metric(gate.key), gate.kind])
        )  # a share of pairs is of no metric
        case = Xml.SubElement(suite, "testcase", classname=visible(checked.run), name=visible(name), time="0.000")
        outcome = {False: "failure", None: "skipped"}.get(gate.passed)
        if outcome:
            Xml.SubElement(case, outcome, message=sentence).text = sentence
        else:
            Xml.SubElement(case, "system-out").text = sentence
    root = Xml.Element("testsuites", name="evalcore")
    root.append(suite)
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def write_junit(path: Path, checked: Checked, *, seconds: float = 0.0) -> Path:
    """Put the file in place at once."""
    return replace_file(path, [render_junit(checked, seconds=seconds)])
