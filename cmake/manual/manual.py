#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages and the bash completion of a program from its --help.

usage: manual.py VERSION OUTPUT PROGRAM…

Writes OUTPUT/man1/NAME.1 for the program and for each of its commands, and OUTPUT/completions/NAME.
"""
import dataclasses
import pathlib
import re
import subprocess
import sys


@dataclasses.dataclass
class Option:
    names: list  # "-o", "--output"; of a positional its name
    value: str  # "FILE", "FORMAT:{table,csv}"; "" of a switch
    text: str

    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.value)
        return found.group(1).split(",") if found else []

    def takes_value(self):
        return bool(self.value) and not self.value.startswith(("Excludes", "Needs", "{", "["))


@dataclasses.dataclass
class Page:
    name: str  # "paceline-record"
    command: str  # "paceline record"
    summary: str
    usage: str
    groups: list  # (title, [Option])
    commands: list = dataclasses.field(default_factory=list)  # (name, summary)
    lists: list = dataclasses.field(default_factory=list)  # (title, [(name, text)]) of everything else


def entry(line, following):
    """The first and second column of a line of --help, and whether the second one is the following line."""
    head, _, text = line[2:].partition("  ")
    if not text and following.startswith(" " * 10):
        return head, following.strip(), True
    return head.strip(), text.strip(), False


def option_of(head, text, positional):
    if positional:
        name, _, value = head.partition(" ")
        return Option([name], value, text)
    names, _, value = head.partition(" ")
    names = [re.sub(r"\{.*\}", "", name) for name in names.split(",")]
    return Option(names, value, text)


def parse(program, command, arguments):
    """The page of a command from its --help."""
    shown = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    lines = shown.splitlines()
    page = Page(command.replace(" ", "-"), command, "", "", [])
    title, at = "", 0
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        at += 1
        if line.startswith("Usage: "):
            page.usage = line.removeprefix("Usage: ")
        elif line.startswith("  ") and title:
            head, text, next_line = entry(line, following)
            at += next_line
            if title.startswith(("Subcommands", "Other commands")):
                page.commands.append((head, text))
            elif head.startswith("-") or title == "Positionals":
                if not page.groups or page.groups[-1][0] != title:
                    page.groups.append((title, []))
                page.groups[-1][1].append(option_of(head, text, title == "Positionals"))
            else:
                if not page.lists or page.lists[-1][0] != title:
                    page.lists.append((title, []))
                page.lists[-1][1].append((head, text))
        elif line.endswith(":"):
            title = line.removesuffix(":")
        elif line and not page.summary:
            page.summary = line.rstrip(".")
    return page


def pages_of(program):
    """The pages of the program and of its commands. The first one is the program's own."""
    name = pathlib.Path(program).name
    main = parse(program, name, ["--help"])
    if any(title.startswith("More with --help TOPIC") for title, _ in main.lists):
        with_all = parse(program, name, ["--help", "all"])
        main.groups, main.usage = with_all.groups, main.usage or f"{name} [OPTIONS]"
        main.lists = [entry for entry in main.lists if not entry[0].startswith("More with")]
    elsewhere = {"train", "view"}  # programs with pages of their own
    pages = [main]
    for command, summary in main.commands:
        if command not in elsewhere:
            page = parse(program, f"{name} {command}", [command, "--help"])
            page.summary = page.summary or summary
            pages.append(page)
    return pages


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def shown_value(value):
    """A value as a man page shows it. Left out are remarks that the text explains in other words."""
    return re.sub(r" ?(Excludes|Needs): .*", "", value).replace("REQUIRED", "").strip()


def man_page(page, version, others):
    out = [f'.TH {page.name.upper()} 1 "" "Paceline {version}" "User Commands"',
           ".SH NAME", f"{escaped(page.name)} \\- {escaped(page.summary[:1].lower() + page.summary[1:])}",
           ".SH SYNOPSIS", f".B {escaped(page.command)}", escaped(page.usage.removeprefix(page.command).strip())]
    for title, options in page.groups:
        out.append(f".SH {title.upper()}")
        for option in options:
            names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in option.names)
            value = shown_value(option.value)
            out += [".TP", f"{names} {escaped(value)}".strip(), escaped(option.text)]
    for title, entries in [("Commands", page.commands), *page.lists]:
        if entries:
            out.append(f".SH {escaped(title.upper())}")
        for name, text in entries:
            out += [".TP", f"\\fB{escaped(name)}\\fR", escaped(text)]
    out += [".SH EXIT STATUS", "0: done; 1: the work failed; 2: wrong usage."]
    if page.name == "paceline-record":
        out.append("Otherwise the status of the recorded command; 125: the recorder failed, 126: the command cannot be run,")
        out.append("127: it was not found.")
    out += [".SH SEE ALSO", ", ".join(f"\\fB{escaped(name)}\\fR(1)" for name in others if name != page.name) + ".",
            "The guides are in /usr/share/doc/paceline/docs."]
    return "\n".join(out) + "\n"


COMPLETION = r"""# bash completion for @NAME@, generated from its options.

# The options of a command, and the values of one of its options: words, or FILE.
@FUNCTION@_options() {
  case $1 in
@OPTIONS@
  esac
}
@FUNCTION@_values() {
  case "$1 $2" in
@VALUES@
  esac
}
@FUNCTION@() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ " @COMMANDS@ " == *" ${COMP_WORDS[i]} "* ]] && command=${COMP_WORDS[i]} && break
  done
  if [[ $command == record ]]; then  # the recorded command
    for ((++i; i < COMP_CWORD; ++i)); do
      [[ ${COMP_WORDS[i]} == -- ]] || continue
      if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$current")); else COMPREPLY=($(compgen -f -- "$current")); fi
      return
    done
  fi
  words=$(@FUNCTION@_values "$command" "$before")
  if [[ -z $words && $current == -* ]]; then
    words=$(@FUNCTION@_options "$command")
  elif [[ -z $words && -z $command && -n "@COMMANDS@" ]]; then
    words="@COMMANDS@"
  fi
  if [[ -n $words && $words != FILE ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F @FUNCTION@ @NAME@
"""


def completion(pages, programs):
    """`programs` are the pages of all programs, whose options `paceline train` and `paceline view` have as well."""
    name = pages[0].name
    commands = {page.command.removeprefix(name).strip(): page for page in pages}
    for command, _ in pages[0].commands:
        if command not in commands:
            commands.update((command, page) for page in programs if page.name == f"{name}-{command}")
    options, values = [], []
    for command, page in commands.items():
        all_options = [option for title, group in page.groups if title != "Positionals" for option in group]
        names = sorted({option_name for option in all_options for option_name in option.names})
        options.append(f"    '{command}') echo '{' '.join(names)}' ;;")
        for option in all_options:
            if not option.takes_value():
                continue
            patterns = " | ".join(f"'{command} {option_name}'" for option_name in option.names)
            values.append(f"    {patterns}) echo '{' '.join(option.choices()) or 'FILE'}' ;;")
    words = {"NAME": name, "FUNCTION": "_" + name.replace("-", "_"), "OPTIONS": "\n".join(options),
             "VALUES": "\n".join(values), "COMMANDS": " ".join(command for command, _ in pages[0].commands)}
    return re.sub("@([A-Z]+)@", lambda found: words[found.group(1)], COMPLETION)


def main(version, output, *programs):
    all_pages = [pages_of(program) for program in programs]
    summaries = {f"{pages[0].name}-{name}": text for pages in all_pages for name, text in pages[0].commands}
    for pages in all_pages:  # `paceline` names the programs that it starts in one line
        pages[0].summary = summaries.get(pages[0].name, pages[0].summary).partition(" (")[0]
    names = [page.name for pages in all_pages for page in pages]
    output = pathlib.Path(output)
    (output / "man1").mkdir(parents=True, exist_ok=True)
    (output / "completions").mkdir(exist_ok=True)
    for pages in all_pages:
        for page in pages:
            others = [name for name in names if name == "paceline" or page.name == "paceline"]
            (output / "man1" / f"{page.name}.1").write_text(man_page(page, version, others or ["paceline"]))
        text = completion(pages, [pages[0] for pages in all_pages])
        (output / "completions" / pages[0].name).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
