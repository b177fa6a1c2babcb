#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: cases.py --list | CASE

PyTorch programs of many kinds, most of them started for each rank by launch.py. None of them knows Paceline. Each rank prints one line with
the number of optimizer steps, the loss and a hash of the weights. `--list` prints the programs with what they need, as JSON.
"""
import importlib.util
import json
import os
import sys

import torch

from programs import common, counting

for of in ("loops", "ranks", "parallel", "frameworks", "titan"):  # they add their programs, in the order of the table
    importlib.import_module("programs." + of)



def lacked(module):
    """The module, if it is not there."""
    try:
        return "" if importlib.util.find_spec(module) else module
    except ImportError:
        return module


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print(json.dumps({name: about | {"lacks": lacked(about["needs"])} for name, (_, about) in common.PROGRAMS.items()}))
    else:
        torch.set_num_threads(1)
        if os.environ.get("CASE_COUNTS"):
            counting.count_in(os.environ["CASE_COUNTS"])
        common.PROGRAMS[sys.argv[1]][0]()
