#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: add_notices.py WHEEL [PACKAGE…]

Adds the licences of other people's libraries to a wheel that auditwheel repaired: the copyright file of the Debian package of each
library in it, and of each named PACKAGE, whose code is compiled in. The texts to which these files refer are added as well. The
module `wheel` packs the wheel again.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

wheel = pathlib.Path(sys.argv[1]).resolve()


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


with tempfile.TemporaryDirectory() as folder:
    output(sys.executable, "-m", "wheel", "unpack", "-d", folder, wheel)
    (tree,) = pathlib.Path(folder).iterdir()
    (info,) = tree.glob("*.dist-info")
    packages = set(sys.argv[2:])
    for library in tree.glob("*.libs/*"):
        name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library.name)  # auditwheel puts a part of a hash into it
        owners = {line.split(":")[0] for line in output("dpkg-query", "-S", f"*/{name}").splitlines()}
        assert len(owners) == 1, f"{name} is of {owners}"
        packages |= owners

    notices = info / "licenses/third-party"
    notices.mkdir(parents=True)
    texts = set()
    for package in sorted(packages):
        source, version = output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package).split()
        notice = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text()
        texts |= set(re.findall(r"/usr/share/common-licenses/(\w[\w.-]*\w)", notice))
        (notices / package).write_text(f"Built by Debian from its source package {source} {version}.\n\n{notice}")
    for text in texts:
        (notices / text).write_bytes(pathlib.Path("/usr/share/common-licenses", text).read_bytes())

    metadata = info / "METADATA"
    lines = "".join(f"License-File: third-party/{file.name}\n" for file in sorted(notices.iterdir()))
    changed, count = re.subn(r"((?:^License-File: .*\n)+)", lambda found: found[0] + lines, metadata.read_text(), flags=re.MULTILINE)
    assert count == 1, "METADATA has no License-File"
    metadata.write_text(changed)
    wheel.unlink()
    output(sys.executable, "-m", "wheel", "pack", "-d", wheel.parent, tree)
print(f"{wheel.name}: the licences of {', '.join(sorted(packages))}")
