# SPDX-License-Identifier: Apache-2.0
"""What a mutant changes: a small set of operators over one line of C++.

The operators are those that Offutt, Lee, Rothermel, Untch and Zapf found sufficient ("An experimental determination of
sufficient mutant operators", ACM TOSEM 5(2), 1996, section 4: relational, logical and arithmetic replacement, insertion
of a unary operator), with the deletion of statements (Untch, "On reduced mutation analysis using a single mutant
operator", 2009) and changed constants. The sources are laid out by clang-format, so that text alone shows what a binary
operator is: it has a blank on either side.
"""
import re

# A text, what takes its place, and the name of the operator. The first that fits at a place is the one that counts.
_REPLACED = [
    (r" == ", " != ", "equal to unequal"),
    (r" != ", " == ", "unequal to equal"),
    (r" < ", " <= ", "< to <="),
    (r" <= ", " < ", "<= to <"),
    (r" > ", " >= ", "> to >="),
    (r" >= ", " > ", ">= to >"),
    (r" && ", " || ", "and to or"),
    (r" \|\| ", " && ", "or to and"),
    (r" \+ ", " - ", "+ to -"),
    (r" - ", " + ", "- to +"),
    (r" \* ", " / ", "* to /"),
    (r" / ", " * ", "/ to *"),
    (r" % ", " / ", "% to /"),
    (r" \+= ", " -= ", "+= to -="),
    (r" -= ", " += ", "-= to +="),
    (r"\btrue\b", "false", "swap a constant"),
    (r"\bfalse\b", "true", "swap a constant"),
    (r"\bmin\(", "max(", "min to max"),
    (r"\bmax\(", "min(", "max to min"),
]
_NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?![\w.\"'])")
_CONDITION = re.compile(r"\b(?:if|while) \(")
_RETURN = re.compile(r"^(\s*)(?:if \(.*\) )?return\b\s*([^;]*);$")
_EMPTY = ("", "{}", "0", "0.0", "false", "nullptr", "std::nullopt")  # what `return {}` returns as well
# An assignment, an increment or a call, alone on its line. A declaration has a type before the name and does not match.
_STATEMENT = re.compile(r"^\s+(?:\*?[\w.:\[\]]+(?:->[\w.:\[\]]+)*(?:\(.*\)|\[.*\])*(?:\s[-+*/|&%^]?=\s.*|\(.*\)|\+\+|--)"
                        r"|(?:\+\+|--)[\w.:>\[\]()-]+);$")
_BODY = re.compile(r"\)(?:\s|const|override|noexcept|->[^;{}]*)*$|\]\s*$")  # a parameter list, or a capture
_NOT_EXECUTED = re.compile(r"^\s*(?:#|using\b|namespace\b|template\b|static_assert\b|struct\b|class\b|enum\b|public:|"
                           r"private:|protected:|friend\b|explicit\b|virtual\b|extern\b|typedef\b|case\b|default:|"
                           r"static constexpr\b|constexpr\b|inline constexpr\b|\"|[{}\s]*;?$)")


def code_of(lines):
    """The lines without comments, and with the contents of their strings blanked; each keeps its length."""
    result, comment = [], False
    for line in lines:
        out, at, quote = [], 0, ""
        while at < len(line):
            two = line[at:at + 2]
            if comment:
                comment = two != "*/"
                out.append(" " * (1 if comment else 2))
                at += 1 if comment else 2
            elif quote:
                step = 2 if line[at] == "\\" else 1
                ends = line[at] == quote
                out.append(quote if ends else "_" * step)
                quote = "" if ends else quote
                at += step
            elif two == "//":
                break
            elif two == "/*":
                comment = True
                out.append("  ")
                at += 2
            else:
                if line[at] == '"' or (line[at] == "'" and not (at and line[at - 1].isalnum())):
                    quote = line[at]
                out.append(line[at])
                at += 1
        result.append("".join(out).rstrip())
    return result


def in_functions(code):
    """For each line, whether it lies in a function's body: a brace follows a parameter list or a lambda's."""
    stack, inside, before = [], [], ""
    for line in code:
        inside.append(any(stack))
        if line.lstrip().startswith("#"):
            continue
        for at, character in enumerate(line):
            if character == "{":
                head = (before + line[:at]).rstrip()
                scope = re.search(r"\b(?:namespace|struct|class|enum|union)\b[^;(){}]*$", head)
                stack.append(not scope and (any(stack) or _BODY.search(head) is not None))
                before, line = "", " " * (at + 1) + line[at + 1:]
                inside[-1] = inside[-1] or any(stack)
            elif character == "}":
                if stack:
                    stack.pop()
                before, line = "", " " * (at + 1) + line[at + 1:]
            elif character == ";":
                before, line = "", " " * (at + 1) + line[at + 1:]
        before = (before + " " + line.strip())[-400:]
    return inside


def mutants_of(line, code):
    """All mutants of a line: (name of the operator, the changed line). `code` is the line as code_of() gives it."""
    found = []
    if _NOT_EXECUTED.match(code):
        return found
    for pattern, new, name in _REPLACED:
        for place in re.finditer(pattern, code):
            found.append((name, line[:place.start()] + new + line[place.end():]))
    for place in _NUMBER.finditer(code):
        found.append(("off by one", line[:place.start()] + str(int(place[1]) + 1) + line[place.end():]))
    for place in _CONDITION.finditer(code):
        depth, at = 1, place.end()
        while at < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        if depth == 0 and ";" not in code[place.end():at]:
            found.append(("negate a condition", f"{line[:place.end()]}!({line[place.end():at - 1]}){line[at - 1:]}"))
    value = _RETURN.match(code)
    if value and value[2] not in _EMPTY:
        found.append(("return an empty value", line[:value.start(2)] + "{}" + line[value.end(2):]))
    if _STATEMENT.match(code) and not code.lstrip().startswith("return"):
        indent = len(line) - len(line.lstrip())
        found.append(("drop a statement", line[:indent] + ";"))
        found.append(("return early", line[:indent] + "return;"))
    return found
