#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documents as a site with search: out/site/index.html. A dead link, a dead anchor, and a page that the navigation of
# mkdocs.yml lacks end it with an error. The first use fetches mkdocs-material from PyPI (20 MB, in build/deps/docs).
# The page of commands and options is made from the programs, which must be built, and the C++ pages by Doxygen from the headers that
# docs/stable-interfaces.md lists. What these leave undocumented ends it with an error, too.
# usage: samples/docs.sh [DIRECTORY-OF-PROGRAMS]       default: build/release/bin
set -euo pipefail
programs=$(realpath -m "${1:-build/release/bin}")
cd "$(dirname "$0")/.."
[ -x "$programs/paceline" ] || { echo "docs.sh: no program $programs/paceline: build it, or name the directory of the programs" >&2; exit 1; }
command -v doxygen >/dev/null || { echo "docs.sh: no doxygen: install Debian's package doxygen" >&2; exit 1; }

# mkdocs-material and all that it needs, of fixed versions.
tools=build/deps/docs
if [ ! -x $tools/bin/mkdocs ]; then
  rm -rf $tools
  python3 -m venv $tools
  $tools/bin/pip install -q --only-binary=:all: --require-hashes -r samples/docs-requirements.txt || { rm -rf $tools; exit 1; }
fi

# The pages keep their places, so that the links between them hold in the tree, in the packages and in the site.
source=out/site-source
rm -rf $source out/site
mkdir -p $source
cp -r --parents docs ./*.md LICENSE samples/README.md tests/bench/README.md tests/mutation/README.md $source/
# Outputs of commands are up to 118 columns wide.
echo '.md-grid { max-width: 84rem; } .md-typeset pre > code { font-size: 0.62rem; }' >$source/site.css

# help_of PROGRAM ARGUMENT…: a section with the program's own text.
help_of() {
  printf '\n## %s\n\n```\n' "$(basename "$1")${2:+ $2}"
  "$@" "$([ "$(basename "$1")" = paceline-train ] && [ -z "${2:-}" ] && echo --help=all || echo --help)"
  printf '```\n'
}
{
  printf '# Commands and options\n\nThese are the texts of `--help`. [What scripts may rely on](stable-interfaces.md) has the exit statuses.\n'
  help_of "$programs/paceline"
  # The last two are programs of their own, which follow.
  for command in $("$programs/paceline" --help | sed '1,/^Subcommands:/d; s/^  \([a-z]*\) .*/\1/; /^train$/d; /^view$/d'); do
    help_of "$programs/paceline" "$command"
  done
  [ ! -x "$programs/paceline-view" ] || help_of "$programs/paceline-view"
  if [ -x "$programs/paceline-train" ]; then
    help_of "$programs/paceline-train"
    for command in make-dataset bench-allreduce; do help_of "$programs/paceline-train" $command; done
  fi
} >$source/docs/commands.md
# The comments of this code become Doxygen's: "// " above a declaration, and behind one.
mapfile -t headers < <(sed -n 's/^\([a-z_/]*\.h\): .*/\1/p' docs/stable-interfaces.md)
[ ${#headers[@]} -gt 0 ] || { echo "docs.sh: docs/stable-interfaces.md lists no header" >&2; exit 1; }
doxygen - <<TXT
PROJECT_NAME = "Paceline: the analysis as a C++ library"
INPUT = ${headers[*]}
OUTPUT_DIRECTORY = $source/docs
HTML_OUTPUT = cpp
GENERATE_LATEX = NO
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
HAVE_DOT = NO
HTML_TIMESTAMP = NO
FILTER_PATTERNS = "*.h=sed -E -e '/SPDX-License/d' -e 's|^( *)//( .*)?$|\1///\2|' -e 's|([^ /].*[^ /]) +// |\1  ///< |'"
TXT
NO_MKDOCS_2_WARNING=1 $tools/bin/mkdocs build --strict
echo "$PWD/out/site/index.html (to search, serve it: python3 -m http.server -d out/site)"
