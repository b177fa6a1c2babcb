#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: stable_interfaces.py DIRECTORY-OF-PROGRAMS SYNTHETIC-RANKS
       stable_interfaces.py --promises DIRECTORY-OF-PROGRAMS

Compares docs/stable-interfaces.md and the JSON schemas with what the programs write, and what they promise with the promises of
each release 1.x: tests/data/promises-VERSION.txt, which --promises prints when a version is released. Here the schemas are closed: a
key that they lack is an error. Status 77: skipped, because jsonschema is missing.
"""
import ast
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema; samples/setup.sh --tests installs Debian's")
    sys.exit(77)

SOURCES = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(sys.argv[1] if sys.argv[1] != "--promises" else sys.argv[2]).resolve()
SYNTHETIC_RANKS = pathlib.Path(sys.argv[2]).resolve()
PAGE = (SOURCES / "docs/stable-interfaces.md").read_text()
SCHEMAS = SOURCES / "docs/schemas"


def paceline(*arguments, status=0, program="paceline"):
    done = subprocess.run([PROGRAMS / program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"{program} {arguments}: status {done.returncode}, not {status}: {done.stderr}"
    return done.stdout


def block_after(words):
    """The block of code after these words of the page, as one line where it wraps after a comma."""
    return re.search(r"```\n(.*?)\n```", PAGE[PAGE.index(words):], flags=re.DOTALL)[1].replace(",\n", ",")


def closed(schema):
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(value) for key, value in schema.items()}
    if isinstance(out.get("properties"), dict) and out.get("type") == "object":
        out.setdefault("additionalProperties", False)
    return out


def check(schema, *documents):
    checker = jsonschema.Draft202012Validator(closed(json.loads((SCHEMAS / f"{schema}.schema.json").read_text())))
    assert documents
    for document in documents:
        for error in checker.iter_errors(document):
            raise AssertionError(f"{schema}.schema.json at {list(error.absolute_path)}: {error.message[:300]}")


def promises_of(schema, path=""):
    """All that a schema promises: its keys, those that are always there, and the types of the values."""
    out = set()
    if isinstance(schema, dict):
        for key in schema.get("required", []):
            out.add(f"{path} always has {key}")
        for key, value in schema.items():
            if key in ("title", "description", "required"):
                continue
            if isinstance(value, (dict, list)) and key != "enum":
                out |= promises_of(value, f"{path}/{key}")
            elif key in ("type", "const", "$ref"):
                out.add(f"{path} {key} {value}")
    elif isinstance(schema, list):
        for place, part in enumerate(schema):
            out |= promises_of(part, f"{path}/{place}")
    return out


def options_of(program):
    """The commands of a program, and the options of each with the values that its help lists."""
    arguments = ["--help=all"] if program == "paceline-train" else ["--help"]
    texts = {program: paceline(*arguments, program=program)}
    commands = re.findall(r"^  ([a-z][a-z-]+)  ", texts[program].partition("Subcommands:")[2], flags=re.MULTILINE)
    for command in set(commands) - {"train", "view"}:  # programs of their own
        texts[f"{program} {command}"] = paceline(command, "--help", program=program)
    out = set(texts)
    for command, text in texts.items():
        for option, rest in re.findall(r"^ +(?:-\w,)?(--[a-z][\w-]*)(.*)", text, flags=re.MULTILINE):
            out.add(f"{command} {option}")
            for values in re.findall(r"^[^ ]* ?[^ ]*\{([^}]*)\}", rest):
                out |= {f"{command} {option} {value}" for value in values.split(",")}
    return out


def promises():
    """What this version promises: a line for each key, column, option, status and name."""
    out = set()
    for file in SCHEMAS.iterdir():
        out |= {file.name + promise for promise in promises_of(json.loads(file.read_text()))}
    section = PAGE.partition("## Exit status")[2].partition("\n## ")[0]
    out |= {f"exit status {status} of {program}" for program, status in
            re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section, flags=re.MULTILINE)[1:]}
    tables = {"export": block_after("`paceline export --to csv`"), "report.csv": block_after("`paceline report --format csv`"),
              **dict(line.split(": ") for line in block_after("With `-o DIRECTORY`").splitlines())}
    for table, columns in tables.items():
        out |= {f"CSV of {table}: column {place} is {name}" for place, name in enumerate(columns.split(","))}
    out |= {f"CSV of runs: {name}" for name in block_after("reads a table of runs").split(",")}
    for language, words in ("C++", "recompile with each version"), ("Python", "Names that begin"):
        for line in block_after(words).splitlines():
            place, names = line.split(": ")
            out |= {f"{language}: {place}: {name}" for name in names.split()}
    for part in re.split(r"\n\n(?=\w+: )", paceline("query", "--schema")):
        out |= {f"query: {part.partition(':')[0]}.{name} {kind}" for name, kind in re.findall(r"^  (\w+) +([A-Z]+) ", part, re.MULTILINE)}
    for program in "paceline", "paceline-train", "paceline-view":
        if (PROGRAMS / program).exists():
            out |= options_of(program)
    return out


def json_outputs():
    """Documents of each schema, of runs that have as much as possible."""
    paceline("before", 4, 60, 10, 2, program=SYNTHETIC_RANKS)
    paceline("after", 4, 60, 10, 2, 1, program=SYNTHETIC_RANKS)
    killed, table = SOURCES / "tests/data/format-1/killed.pace", SOURCES / "tests/data/reedbush-2018.csv"
    out = {"info": [json.loads(paceline("info", "--format", "json", run)) for run in ("before", killed)],
           "report": [json.loads(paceline("report", "--format", "json", *runs))
                      for runs in (["after"], ["before", "after"], [killed], [table])],
           "compare": [json.loads(paceline("compare", "--format", "json", "before", "after"))],
           "whatif": [json.loads(paceline("whatif", "--format", "json", "after"))],
           "watch": [json.loads(line) for line in paceline("watch", "--once", "--json", "after").splitlines()]}
    if (PROGRAMS / "paceline-train").exists():
        for ranks in 1, 2:
            subprocess.run(["mpirun", "--bind-to", "none", "-n", str(ranks), PROGRAMS / "paceline", "record", "-o", f"train{ranks}", "--",
                            PROGRAMS / "paceline-train", *"--synthetic --image-size 32 --width 0.125 --train-images 160 --test-images 8"
                            " --batch-size 8 --epochs 2 --threads 1 --log log.jsonl".split()], check=True, capture_output=True)
        out["train-log"] = [json.loads(line) for line in pathlib.Path("log.jsonl").read_text().splitlines()]
        assert {line["event"] for line in out["train-log"]} == {"start", "iteration", "epoch", "end"}
        out["report"].append(json.loads(paceline("report", "--format", "json", "train1", "train2")))
        out["info"].append(json.loads(paceline("info", "--format", "json", "train2")))
    return out


def check_json():
    outputs = json_outputs()
    files = {file.name.removesuffix(".schema.json") for file in SCHEMAS.iterdir()}
    assert files == set(re.findall(r"\(schemas/([a-z-]+)\.schema\.json\)", PAGE))
    assert files - set(outputs) <= {"train-log"}, f"no output of {files - set(outputs)} was checked"
    for schema, documents in outputs.items():
        check(schema, *documents)
    wrong = outputs["whatif"][0] | {"step_s": "soon"}
    try:
        check("whatif", wrong)
    except AssertionError:
        pass
    else:
        raise AssertionError("a wrong document passes")


def check_earlier_releases():
    now = promises()
    releases = sorted((SOURCES / "tests/data").glob("promises-1.*.txt"))
    assert releases and len(now) > 1000
    for release in releases:
        lost = {line for line in set(release.read_text().splitlines()) - now if (PROGRAMS / line.split()[0]).exists()
                or not line.startswith("paceline-")}
        assert not lost, f"promised in {release.name} and missing now:\n" + "\n".join(sorted(lost))


def check_csv():
    def header(text):
        return text.splitlines()[0]
    assert header(paceline("export", "--to", "csv", "after")) == block_after("`paceline export --to csv`")
    phases = json.loads((SCHEMAS / "report.schema.json").read_text())["$defs"]["phases"]["propertyNames"]["enum"]
    paceline("report", "--format", "csv", "-o", "tables/", "after")
    columns = block_after("`paceline report --format csv`").split(",")
    have = header(pathlib.Path("tables/report.csv").read_text()).split(",")
    at = columns.index("PHASES")
    assert have == [*columns[:at], *(f"{phase}_ns" for phase in phases), *columns[at + 1:]], have
    promised = dict(line.split(": ") for line in block_after("With `-o DIRECTORY`").splitlines())
    written = {file.name: header(file.read_text()) for file in pathlib.Path("tables").iterdir()}
    del written["report.csv"]
    assert len(written) >= 3 and written.items() <= promised.items(), written
    columns = block_after("reads a table of runs").split(",")
    pathlib.Path("runs.csv").write_text("".join(",".join(row) + "\n" for row in [
        columns, ["1", "2", "1000", "100", "0.5"] + ["1"] * (len(columns) - 5),
        ["2", "2", "1000", "60", "0.5"] + ["1"] * (len(columns) - 5)]))
    point = json.loads(paceline("report", "--format", "json", "runs.csv"))["scaling"]["points"][1]
    assert round(point["speedup"], 6) == round(100 / 60, 6)
    missing = set(columns[6:]) - set(point["config"])
    assert not missing, f"not columns of a table of runs: {missing}"


def check_statuses():
    section = PAGE.partition("## Exit status")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?:all|`paceline[^`]*`) \| ([^|]+) \|", section, flags=re.MULTILINE)
    assert rows == ["0", "1", "2", "that of the command", "125", "126", "127", "1"], "a status without a check below"
    pathlib.Path("no-program").write_text("")
    paceline("info", "nothing-here", status=1)
    paceline("info", status=2)
    paceline("record", "-o", "status", "--", "bash", "-c", "exit 7", status=7)
    paceline("record", "-o", "/proc/none", "--", "true", status=125)
    paceline("record", "--colour", status=2)
    paceline("record", "-o", "status", "--", "./no-program", status=126)
    paceline("record", "-o", "status", "--", "not-a-program", status=127)
    paceline("compare", "--fail-above", "1%", "before", "after", status=1)  # not judged; compare_cli_test.cpp has the other cases


def check_traces():
    promised = re.search(r"The recorder writes version (\d).*?read the versions (\d) and (\d)", PAGE, flags=re.DOTALL)
    assert promised, "the page does not name the versions of .pace files"

    def version(file):
        return str(struct.unpack_from("<I", file.read_bytes(), 8)[0])
    old = SOURCES / "tests/data/format-1/closed.pace"
    assert {version(old), version(next(pathlib.Path("after").glob("*.pace")))} == {promised[2], promised[3]}
    assert promised[1] == promised[3]
    paceline("info", old)


def check_interfaces():
    for line in block_after("recompile with each version").splitlines():
        header, names = line.split(": ")
        text = (SOURCES / header).read_text()
        for name in names.split():
            assert re.search(rf"\b{name}\b", text), f"{header} has no {name}"
    package = SOURCES / "analysis/python/paceline"
    trees = [ast.parse((package / file).read_text()) for file in ("__init__.py", "_recorder.py")]
    have = {}
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, ast.ClassDef):
            have[node.name] = {part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name[0] != "_"}
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            have["paceline"] = set(ast.literal_eval(node.value))
    promised = {line.split(": ")[0]: set(line.split(": ")[1].split()) for line in block_after("Names that begin").splitlines()}
    assert promised == have, (promised, have)
    for program in "paceline", "paceline-train", "paceline-view":
        if (PROGRAMS / program).exists():
            assert re.match(rf"{program} \d+\.\d+\.\d+\n", paceline("--version", program=program))


os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                  QT_QPA_PLATFORM="offscreen")
if sys.argv[1] == "--promises":
    print("\n".join(sorted(promises())))
    sys.exit()
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    for each in check_json, check_earlier_releases, check_csv, check_statuses, check_traces, check_interfaces:
        each()
        print(f"{each.__name__}: done")
    os.chdir(SOURCES)
