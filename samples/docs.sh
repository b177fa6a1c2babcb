#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documents as a site with search: out/site/index.html. A dead link, a dead anchor, and a page that the navigation of
# mkdocs.yml lacks end it with an error. The first use fetches mkdocs-material from PyPI (20 MB, in build/deps/docs).
# usage: samples/docs.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# mkdocs-material and all that it needs, of fixed versions.
tools=build/deps/docs
if [ ! -x $tools/bin/mkdocs ]; then
  rm -rf $tools
  python3 -m venv $tools
  $tools/bin/pip install -q --only-binary=:all: -r samples/docs-requirements.txt || { rm -rf $tools; exit 1; }
fi

# The pages keep their places, so that the links between them hold in the tree, in the packages and in the site.
source=out/site-source
rm -rf $source out/site
mkdir -p $source
cp -r --parents docs ./*.md LICENSE samples/README.md tests/bench/README.md tests/mutation/README.md $source/
NO_MKDOCS_2_WARNING=1 $tools/bin/mkdocs build --strict
echo "$PWD/out/site/index.html"
