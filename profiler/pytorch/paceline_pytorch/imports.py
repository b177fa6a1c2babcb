# SPDX-License-Identifier: Apache-2.0
"""The import hook: it lets a module be imported as always, and then calls a function for it. A script that imports
paceline where the package is not installed gets script.py."""
import importlib.util
import os
import sys

# By module: the submodule of this package that hooks it, after it was imported.
_HOOKED = {
    "torch": "torch_hooks",
    "transformers.modeling_utils": "transformers_hooks",
    "transformers.trainer": "transformers_hooks",
    "accelerate.accelerator": "accelerate_hooks",
    "safetensors.torch": "safetensors_hooks",
    "torch._dynamo": "compiled_hooks",
}


def say(text):
    sys.stderr.write("paceline: %s\n" % text)


def _run_hook(name, module):
    try:
        importlib.import_module("." + _HOOKED[name], __package__).install(module)
    except Exception as error:  # the recorder never ends a program
        say("%s is not recorded: %s: %s" % (name, type(error).__name__, error))


class Finder:
    """Finds nothing itself: it asks the other finders and makes the loader that they give call the hook."""

    def find_spec(self, name, path=None, target=None):
        if name not in _HOOKED and name != "paceline":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if isinstance(finder, Finder) or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if name in _HOOKED:
                    self._attach(name, spec.loader)
                return spec
        if name == "paceline":  # it is not installed
            return importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(__file__), "script.py"))
        return None

    @staticmethod
    def _attach(name, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            execute(module)
            _run_hook(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            say("%s is not recorded: its loader, %s, cannot be extended" % (name, type(loader).__name__))


def install():
    if os.environ.get("PACELINE_PYTORCH") and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
