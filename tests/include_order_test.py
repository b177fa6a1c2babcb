#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test of include_order.py itself: it must notice an include that runs the wrong way."""
import pathlib
import tempfile
import unittest

import include_order

ROOMS = {"low": ["base", "core other", "core/part", ".", "main.cpp"], "high": ["."]}
OTHER_ROOMS = {"high": ["low/base"]}


def check(**files):
    """check() of a tree with these files: a name's double underscores are slashes, a value is what the file includes."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder)
        for name, included in files.items():
            file = sources / (name.replace("__", "/") + ".h")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'#pragma once\n#include "{included}"\n')
        return include_order.check(sources, ROOMS, OTHER_ROOMS)[0]


class IncludeOrder(unittest.TestCase):
    def test_includes_of_the_own_folder_and_of_lower_ones_are_right(self):
        self.assertEqual(check(low__base__a="low/base/b.h", low__core__a="low/base/a.h", low__core__part__a="low/core/a.h",
                               low__a="low/core/part/a.h"), [])

    def test_an_include_of_a_higher_folder_is_reported(self):
        self.assertEqual(check(low__base__a="low/core/a.h"),
                         ["low/base/a.h includes low/core/a.h: core stands above base"])

    def test_a_folder_inside_another_has_a_place_of_its_own(self):
        self.assertEqual(check(low__core__a="low/core/part/a.h"),
                         ["low/core/a.h includes low/core/part/a.h: core/part stands above core"])

    def test_a_file_may_have_a_place_of_its_own(self):
        self.assertEqual(check(low__a="low/main.cpp"), ["low/a.h includes low/main.cpp: main.cpp stands above ."])

    def test_folders_in_one_line_may_include_each_other(self):
        self.assertEqual(check(low__core__a="low/other/a.h", low__other__b="low/core/a.h"), [])

    def test_units_that_include_each_other_are_a_circle(self):
        self.assertEqual(check(low__base__a="low/base/b.h", low__base__b="low/base/c.h", low__base__c="low/base/b.h"),
                         ["include each other in a circle: low/base/b, low/base/c"])

    def test_a_header_and_its_source_file_are_one_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            base = pathlib.Path(folder) / "low/base"
            base.mkdir(parents=True)
            for name, included in {"a.h": [], "a.cpp": ["a.h", "b.h"], "b.h": ["a.h"]}.items():
                (base / name).write_text("".join(f'#include "low/base/{header}"\n' for header in included))
            self.assertEqual(include_order.check(pathlib.Path(folder), ROOMS, {})[0],
                             ["include each other in a circle: low/base/a, low/base/b"])

    def test_folders_that_lie_apart_do_not_include_each_other(self):
        rooms = {"profiler": ["record", "inject"]}
        with tempfile.TemporaryDirectory() as folder:
            for name, included in {"record/a.h": "inject/b.h", "inject/b.h": "record/c.h", "record/c.h": "record/d.h"}.items():
                file = pathlib.Path(folder) / "profiler" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f'#include "profiler/{included}"\n')
            wrong = include_order.check(pathlib.Path(folder), rooms, {})[0]
            self.assertEqual(sum("share only what stands below both" in line for line in wrong), 2)

    def test_a_room_includes_only_what_it_may_of_another(self):
        self.assertEqual(check(high__a="low/base/a.h"), [])
        self.assertEqual(len(check(high__a="low/core/a.h")), 1)
        self.assertEqual(len(check(low__core__a="high/a.h")), 1)

    def test_a_folder_without_a_place_is_reported(self):
        rooms = {"low": ["base"]}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "low/new").mkdir(parents=True)
            (pathlib.Path(folder) / "low/new/a.h").write_text("")
            self.assertEqual(len(include_order.check(pathlib.Path(folder), rooms, {})[0]), 1)

    def test_other_text_is_not_an_include(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "low/base").mkdir(parents=True)
            (pathlib.Path(folder) / "low/base/a.h").write_text('// #include "low/core/a.h"\n#include <low/core/a.h>\n')
            self.assertEqual(include_order.check(pathlib.Path(folder), ROOMS, {}), ([], 0))


if __name__ == "__main__":
    unittest.main()
