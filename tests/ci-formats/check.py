"""Reads reports of `cutlist lint` as the programs do that they are for: JUnit by its schema and a reader, Code Quality by its schema, XML and
JSON by their parsers. Usage: check.py FOLDER JUNIT_SCHEMA"""

import json
import pathlib
import sys
import xml.etree.ElementTree

import jsonschema
import junitparser
import xmlschema

folder = pathlib.Path(sys.argv[1])
report = json.loads((folder / "report.json").read_text())
findings = report["diagnostics"]
assert len(findings) > 3 and report["suppressed"], "the case has findings of every sort"
failing = [it for it in findings if it["severity"] != "note"]

# JUnit, by the schema of Jenkins and by a reader.
schema = xmlschema.XMLSchema(sys.argv[2])
for name in ["report.junit", "clean.junit"]:
    root = xml.etree.ElementTree.parse(folder / name).getroot()
    # The schema is older than these, which GitLab and others read.
    del root.attrib["skipped"]
    for case in root.iter("testcase"):
        del case.attrib["file"], case.attrib["line"]
    for skipped in root.iter("skipped"):
        del skipped.attrib["message"]
    schema.validate(root)
junit = junitparser.JUnitXml.fromfile(str(folder / "report.junit"))
assert junit.failures == len(failing), (junit.failures, len(failing))
assert junit.skipped == len(report["suppressed"])
assert junitparser.JUnitXml.fromfile(str(folder / "clean.junit")).failures == 0

# Code Quality, by what GitLab documents.
quality = json.loads((folder / "report.gitlab").read_text())
jsonschema.validate(quality, json.loads(pathlib.Path(__file__).with_name("gitlab-code-quality.json").read_text()))
assert len(quality) == len(findings) == len({it["fingerprint"] for it in quality})

# SARIF: as many results as findings, each with a fingerprint, and fixes that fit their file.
run = json.loads((folder / "report.sarif").read_text())["runs"][0]
counted = [it for it in run["results"] if not it["suppressions"]]
assert len(counted) == len(findings) and len(run["results"]) == len(findings) + len(report["suppressed"])
assert len({it["partialFingerprints"]["cutlistFinding/v1"] for it in run["results"]}) == len(run["results"])
rules = run["tool"]["driver"]["rules"]
assert all(rules[it["ruleIndex"]]["id"] == it["ruleId"] for it in run["results"])
assert all(it["help"]["markdown"] and it["helpUri"] for it in rules)
assert any("fixes" in it for it in run["results"])

# What the multitool has against it: nothing, but against one that is broken.
for name, is_valid in [("report", True), ("clean", True), ("broken", False)]:
    complaints = json.loads((folder / f"{name}.validated").read_text(encoding="utf-8-sig"))["runs"][0]["results"]
    assert (complaints == []) == is_valid, (name, complaints)

# TAP, as the parser of node-tap read it: one test for each file, and the findings in its YAML.
events = json.loads((folder / "report.tap.json").read_text())
tests = [event[1] for event in events if event[0] == "assert"]
assert {it["name"]: it["ok"] for it in tests} == {file: file not in {it["file"] for it in failing} for file in {it["name"] for it in tests}}
said = [finding for it in tests if it["diag"] for finding in it["diag"]["findings"]]
assert [it["message"] for it in said] == [it["message"] for it in findings]

# Checkstyle.
checkstyle = xml.etree.ElementTree.parse(folder / "report.checkstyle").getroot()
assert checkstyle.tag == "checkstyle" and len(checkstyle.findall("file/error")) == len(findings)
for error in checkstyle.findall("file/error"):
    assert error.get("severity") in ["error", "warning", "info"] and int(error.get("line")) > 0 and error.get("source")

# JSON Lines: each line is JSON, the last one has the counts.
lines = [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]
assert lines[: len(findings)] == findings and lines[-1]["summary"] == report["summary"]

# Workflow commands: one line for each finding, and one that counts them.
*commands, counts = (folder / "report.github").read_text().splitlines()
assert "error" in counts and not counts.startswith("::"), counts
assert len(commands) == len(findings) and all(it.startswith(("::error ", "::warning ", "::notice ")) for it in commands)
print(f"{len(findings)} findings in every form")
