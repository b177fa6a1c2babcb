#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: folders_test.py PACELINE-TRAIN [--show] [CASE…]

Odd data sets: each one trains, or is refused in one line that names the file and says what to do. --show prints what
each run says. Exit status 77 where Pillow (python3-pil) is missing, which draws the pictures.
"""
import io
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zlib

try:
    from PIL import Image, ImageCms
except ImportError:
    print("skipped: Pillow is not installed")
    sys.exit(77)

RUN = {"--model": "resnet18", "--width": "0.125", "--image-size": "16", "--batch-size": "2", "--iterations": "1",
       "--threads": "1"}


def picture(mode="RGB", size=(20, 18), kind="JPEG", **options):
    """The bytes of a picture with a gradient."""
    image = Image.linear_gradient("L").resize(size)
    image = image.convert("RGB").convert(mode) if mode not in ("I;16", "I", "1", "P", "PA") else image.convert("L").convert(
        {"I;16": "I", "PA": "P"}.get(mode, mode))
    if mode == "I;16":
        image = image.point(lambda value: value * 256).convert("I;16")
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def base(root, content=None, extension="jpg"):
    """Two classes with four pictures for training and one for testing."""
    for part, count in (("train", 4), ("val", 1)):
        for name in ("cat", "dog"):
            for i in range(count):
                write(root / part / name / f"{i}.{extension}", content or picture())
    return root


def with_file(name, content):
    """The usual set, in which this is the content of a file."""
    return lambda root: write(base(root) / name, content() if callable(content) else content)


def all_of(content, extension):
    return lambda root: base(root, content(), extension)


def after(change):
    """The usual set with a change: change(root)."""
    return lambda root: change(base(root))


def replaced(change):
    """The usual set, in which change(path) makes the first training picture anew."""
    def make(root):
        path = base(root) / "train/cat/0.jpg"
        path.unlink()
        change(path)
    return make


def move(old, new):
    return after(lambda root: (root / old).rename(root / new))


def remove(*names):
    return after(lambda root: [shutil.rmtree(root / n) if (root / n).is_dir() else (root / n).unlink() for n in names])


def png_chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png_claiming(width, height):
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"")) + png_chunk(b"IEND", b"")


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(path.parent)
        one.bind(path.name)
        os.chdir(here)


def animation():
    out = io.BytesIO()
    frames = [Image.new("RGB", (20, 18), (i * 80, 0, 0)) for i in range(3)]
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:])
    return out.getvalue()


def cifar(root, batches=5, test=True, records=2, label=1, cut=0):
    for name in [f"data_batch_{i + 1}.bin" for i in range(batches)] + (["test_batch.bin"] if test else []):
        content = (bytes([label]) + bytes(3072)) * records
        write(root / name, content[:len(content) - cut])


def no_rights(*names):
    return after(lambda root: [(root / name).chmod(0) for name in names])


# The name of each case, what makes its data set, and what the run says: None where it trains without a note, "+" and a
# pattern of the note where it trains with one, or a pattern of the one line of the refusal.
CASES = []
NO_SET = (r"data: no data_batch_1\.bin in it, and no folder train of pictures: unpack CIFAR-10's binary version there, "
          "or draw a set with: paceline-train make-dataset data")


def bad(what):
    return what + ": not a picture that can be used: replace it, remove it, or give --on-bad-image skip"



def case(name, make, says, *options, path="{}"):
    CASES.append((name, make, says, list(options), path))


# Directories
case("misspelt", lambda root: base(root),
     r"data-misspelt: no such data set directory: draw one with: paceline-train make-dataset data-misspelt", path="{}-misspelt")
case("a file", lambda root: write(root / "x", b"x"), r"data/x: is a file: give its directory to --data", path="{}/x")
case("trailing slash", lambda root: base(root), None, path="{}/")
case("empty", lambda root: None, NO_SET)
case("only files", lambda root: write(root / "0.jpg", picture()), NO_SET)
case("classes without train and val", lambda root: [write(root / c / "0.jpg", picture()) for c in "ab"], NO_SET)
case("one level too high", lambda root: base(root / "set"), NO_SET)
case("no val", remove("val"), r"data: has a folder train, but neither val nor test: move some pictures of each class to val")
case("test instead of val", move("val", "test"), None)
case("validation instead of val", move("val", "validation"),
     r"data: has a folder train, but neither val nor test: move some pictures of each class to val")
case("Train with a capital", move("train", "Train"), NO_SET)
case("train is a file", after(lambda root: (shutil.rmtree(root / "train"), write(root / "train", b""))), NO_SET)
case("empty train", after(lambda root: (shutil.rmtree(root / "train"), (root / "train").mkdir())),
     r"data/train: no classes: make a folder of pictures for each class in it")
case("empty val", after(lambda root: (shutil.rmtree(root / "val"), (root / "val").mkdir())),
     r"data/val: no classes: it needs folders like those of train")
case("one class", remove("train/dog", "val/dog"), r"data/train: a single class: make a folder of pictures for each class in it")
case("an empty class", after(lambda root: (root / "train/emu").mkdir()),
     r"data/train/emu: a class without pictures \(\*\.jpg, \*\.png, \*\.webp\): add some, or remove the folder")
case("an empty class of val", after(lambda root: ((root / "val/cat/0.jpg").unlink())),
     r"data/val/cat: a class without pictures \(\*\.jpg, \*\.png, \*\.webp\): add some, or remove the folder")
case("a class that val lacks", remove("val/dog"), None)
case("a class that train lacks", with_file("val/emu/0.jpg", picture),
     r"data/val/emu: a class that data/train does not have: use the same classes for training and evaluation")
case("fewer images than a batch", lambda root: base(root),
     r"data: 8 training images are fewer than one iteration takes \(1 ranks × batch 9\): lower --batch-size", "--batch-size", "9")
case("a dangling link for train", after(lambda root: (shutil.rmtree(root / "train"), (root / "train").symlink_to("no"))), NO_SET)
case("train is a link", after(lambda root: ((root / "train").rename(root / "t"), (root / "train").symlink_to("t"))), None)
case("a class is a link", after(lambda root: (root / "train/emu").symlink_to("cat")), None)
case("no right to the directory", no_rights("."), r"data: cannot be read: Permission denied")
case("no right to train", no_rights("train"), r"data/train: cannot be read: Permission denied")
case("no right to a class", no_rights("train/cat"), r"data/train/cat: cannot be read: Permission denied")
case("CIFAR-10 and folders", after(cifar), None)
# Names and places of files
case("pictures in subfolders", with_file("train/cat/deep/deeper/9.jpg", picture), None)
case("pictures only in subfolders", lambda root: [write(root / p / c / "x" / f"{i}.jpg", picture()) for p in ("train", "val") for c in "ab" for i in range(2)], None)
case("a picture beside the classes", with_file("train/9.jpg", picture),
     r"+1 file of the data set is ignored: data/train/9\.jpg: not in a folder of a class")
case("a text file beside the classes", with_file("train/labels.txt", b"x"),
     r"+1 file of the data set is ignored: data/train/labels\.txt: not a picture")
case("a text file in a class", with_file("train/cat/notes.txt", b"x"),
     r"+1 file of the data set is ignored: data/train/cat/notes\.txt: its name does not end in \.jpg, \.jpeg, \.png or \.webp")
case("three files that are ignored", after(lambda root: [write(root / f"train/cat/{i}.txt", b"") for i in range(3)]),
     r"+3 files of the data set are ignored, among them data/train/cat/[012]\.txt: its name does not end in \.jpg, \.jpeg, \.png or \.webp")
case("a GIF", with_file("train/cat/9.gif", lambda: picture(kind="GIF", mode="P")),
     r"+1 file of the data set is ignored: data/train/cat/9\.gif: its name does not end in \.jpg, \.jpeg, \.png or \.webp")
case("hidden files", with_file("train/cat/.DS_Store", b"x"), None)
case("a hidden folder", with_file("train/.git/0.jpg", b"x"), None)
case("extensions in capitals", with_file("train/cat/9.JPEG", picture), None)
case("a name of 255 bytes", with_file("train/cat/" + "x" * 251 + ".jpg", picture), None)
case("a class of 255 bytes", after(lambda root: [(root / p / "cat").rename(root / p / ("x" * 255)) for p in ("train", "val")]), None)
case("names with spaces and quotes", with_file("train/cat/a 'b' \"c\".jpg", picture), None)
case("a name with a line break", with_file("train/cat/a\nb.jpg", picture), None)
case("a bad picture with a line break", with_file("train/cat/a\nb.jpg", b"x"),
     bad(r"data/train/cat/a\?b\.jpg: Premature end of JPEG file"), "--iterations", "4")
case("a name that is not UTF-8", after(lambda root: write(pathlib.Path(os.fsdecode(bytes(root) + b"/train/cat/\xff\xfe.jpg")), picture())), None)
case("a class in Cyrillic", after(lambda root: [(root / p / "cat").rename(root / p / "кот") for p in ("train", "val")]), None)
case("a link to a picture", replaced(lambda path: path.symlink_to("1.jpg")), None)
case("a dangling link", replaced(lambda path: path.symlink_to("none.jpg")),
     bad(r"data/train/cat/0\.jpg: cannot be read: No such file or directory"), "--iterations", "4")
case("a link to itself", replaced(lambda path: path.symlink_to("0.jpg")),
     bad(r"data/train/cat/0\.jpg: cannot be read: Too many levels of symbolic links"), "--iterations", "4")
case("a link to the folder around it", after(lambda root: (root / "train/cat/loop").symlink_to(".")),
     r"+1 file of the data set is ignored: data/train/cat/loop: a link to a folder around it")
case("a loop of two folders", after(lambda root: ((root / "train/cat/a").symlink_to("../dog"), (root / "train/dog/b").symlink_to("../cat"))),
     r"+2 files of the data set are ignored, among them data/train/(cat/a/b|dog/b/a): a link to a folder around it")
case("a folder named as a picture", replaced(lambda path: path.mkdir()),
     bad(r"data/train/cat/0\.jpg: cannot be read: it is a directory"), "--iterations", "4")
case("a FIFO", replaced(fifo), bad(r"data/train/cat/0\.jpg: cannot be read: it is a FIFO"), "--iterations", "4")
case("a socket", replaced(unix_socket),
     bad(r"data/train/cat/0\.jpg: cannot be read: No such device or address"), "--iterations", "4")
case("a device", replaced(lambda path: path.symlink_to("/dev/zero")),
     bad(r"data/train/cat/0\.jpg: cannot be read: it is a device"), "--iterations", "4")
case("no right to a picture", no_rights("train/cat/0.jpg"),
     bad(r"data/train/cat/0\.jpg: cannot be read: Permission denied"), "--iterations", "4")
# Contents
case("PNG", all_of(lambda: picture(kind="PNG"), "png"), None)
case("WebP", all_of(lambda: picture(kind="WEBP"), "webp"), None)
case("lossless WebP", all_of(lambda: picture(kind="WEBP", lossless=True), "webp"), None)
case("transparent PNG", all_of(lambda: picture("RGBA", kind="PNG"), "png"), None)
case("transparent WebP", all_of(lambda: picture("RGBA", kind="WEBP"), "webp"), None)
case("grey PNG", all_of(lambda: picture("L", kind="PNG"), "png"), None)
case("16-bit PNG", all_of(lambda: picture("I;16", kind="PNG"), "png"), None)
case("PNG with a palette", all_of(lambda: picture("P", kind="PNG"), "png"), None)
case("PNG of one bit", all_of(lambda: picture("1", kind="PNG"), "png"), None)
case("grey JPEG", all_of(lambda: picture("L"), "jpg"), None)
case("CMYK JPEG", all_of(lambda: picture("CMYK"), "jpg"), None)
case("progressive JPEG", all_of(lambda: picture(progressive=True), "jpg"), None)
case("JPEG with a rotation", all_of(lambda: picture(exif=b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"), "jpg"), None)
case("JPEG with a colour profile", all_of(lambda: picture(icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()), "jpg"), None)
case("a picture of one pixel", all_of(lambda: picture(size=(1, 1)), "jpg"), None)
case("a picture of 1 × 3000 pixels", all_of(lambda: picture(size=(1, 3000), kind="PNG"), "png"), None)
case("a mixed set", after(lambda root: (write(root / "train/cat/8.png", picture(kind="PNG")), write(root / "train/dog/9.webp", picture(kind="WEBP")))), None)
case("a PNG named .jpg", with_file("train/cat/0.jpg", lambda: picture(kind="PNG")), None, "--iterations", "4")
case("a JPEG named .png", with_file("train/cat/9.png", picture), None, "--iterations", "4")
case("a GIF named .jpg", with_file("train/cat/0.jpg", lambda: picture(kind="GIF", mode="P")),
     bad(r"data/train/cat/0\.jpg: Not a JPEG file: starts with 0x47 0x49"), "--iterations", "4")
case("an empty file", with_file("train/cat/0.jpg", b""), bad(r"data/train/cat/0\.jpg: Empty input file"), "--iterations", "4")
case("a text named .jpg", with_file("train/cat/0.jpg", b"404 not found"),
     bad(r"data/train/cat/0\.jpg: Not a JPEG file: starts with 0x34 0x30"), "--iterations", "4")
case("a cut JPEG", with_file("train/cat/0.jpg", lambda: picture()[:-40]),
     bad(r"data/train/cat/0\.jpg: Premature end of JPEG file"), "--iterations", "4")
case("a JPEG of a header", with_file("train/cat/0.jpg", lambda: picture()[:30]),
     bad(r"data/train/cat/0\.jpg: Premature end of JPEG file"), "--iterations", "4")
case("a cut PNG", with_file("train/cat/0.jpg", lambda: picture(kind="PNG")[:-40]),
     bad(r"data/train/cat/0\.jpg: the file ends early"), "--iterations", "4")
case("a cut WebP", with_file("train/cat/0.jpg", lambda: picture(kind="WEBP")[:-40]),
     bad(r"data/train/cat/0\.jpg: damaged or truncated WebP data"), "--iterations", "4")
case("a damaged PNG", with_file("train/cat/0.jpg", lambda: picture(kind="PNG").replace(b"IDAT\x78", b"IDAT\x79")),
     bad(r"data/train/cat/0\.jpg: IDAT: incorrect header check"), "--iterations", "4")
case("a PNG of 60,000 × 60,000 pixels", with_file("train/cat/0.jpg", png_claiming(60000, 60000)),
     bad(r"data/train/cat/0\.jpg: 60000 × 60000 pixels are more than the 134 million that are read here"), "--iterations", "4")
case("a PNG without pixels", with_file("train/cat/0.jpg", png_claiming(0, 20)),
     bad(r"data/train/cat/0\.jpg: Invalid IHDR data"), "--iterations", "4")
case("an animation", with_file("train/cat/0.jpg", animation), bad(r"data/train/cat/0\.jpg: an animation"), "--iterations", "4")
case("a cut test picture", with_file("val/cat/0.jpg", lambda: picture()[:-40]),
     bad(r"data/val/cat/0\.jpg: Premature end of JPEG file"))
# CIFAR-10
case("CIFAR-10", cifar, None, "--image-size", "32")
case("CIFAR-10 in the folder of its archive", lambda root: cifar(root / "cifar-10-batches-bin"), None, "--image-size", "32")
case("CIFAR-10 without a batch", lambda root: cifar(root, batches=4),
     r"+data: trains without data_batch_5\.bin, which is missing", "--image-size", "32")
case("CIFAR-10 without its test", lambda root: cifar(root, test=False),
     r"data: no test_batch\.bin in it, and no folder train of pictures: unpack CIFAR-10's binary version there, or draw a set with: paceline-train make-dataset data", "--image-size", "32")
case("CIFAR-10 that is cut", lambda root: cifar(root, cut=1),
     r"data/data_batch_1\.bin: 6145 bytes is not a whole number of records of 3073 bytes: copy or download the file again", "--image-size", "32")
case("CIFAR-10 that is empty", lambda root: cifar(root, records=0),
     r"data/data_batch_1\.bin: 0 bytes is not a whole number of records of 3073 bytes: copy or download the file again", "--image-size", "32")
case("CIFAR-10 with label 200", lambda root: cifar(root, label=200),
     r"data/data_batch_1\.bin: record 0 has label 200, above 9: this is not a CIFAR-10 batch file", "--image-size", "32")
case("CIFAR-10 for Python", lambda root: [write(root / f"data_batch_{i}", b"x") for i in range(1, 6)],
     NO_SET, "--image-size", "32")
case("CIFAR-10 at another size", cifar, r"data: CIFAR-10's images have 32 pixels on each side: to enlarge them give --resize 16")

def run(train, root, make, options, path):
    data = root / "data"
    data.mkdir()
    make(data)
    wanted = {**RUN, **dict(zip(options[::2], options[1::2]))}
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o777)
    user = {"user": 65534} if os.geteuid() == 0 else {}  # root may read everything
    arguments = [train, "--data", path.format(data)] + [text for pair in wanted.items() for text in pair]
    return subprocess.run(arguments, capture_output=True, text=True, errors="backslashreplace", env={**os.environ, "TMPDIR": str(root / "tmp")}, cwd=root, timeout=120, **user)


def judge(result, says, root):
    """What is wrong, or nothing."""
    text = (result.stdout + result.stderr).replace(str(root) + "/", "")
    if says is None or says.startswith("+"):
        notes = [line for line in result.stdout.replace(str(root) + "/", "").splitlines()
                 if not re.match(r"epoch |\d+ images in |the warm-up of |no image was left out", line)]
        if result.returncode != 0 or result.stderr:
            return f"it does not train: {text}"
        if says is None:
            return f"notes: {notes}" if notes else ""
        return "" if len(notes) == 1 and re.fullmatch(says[1:], notes[0]) else f"notes: {notes}"
    lines = result.stderr.replace(str(root) + "/", "").splitlines()
    if result.returncode not in (1, 2) or len(lines) != 1:
        return f"status {result.returncode}: {text}"
    return "" if re.fullmatch("paceline-train: " + says, lines[0]) else lines[0]


def main():
    train = os.path.abspath(sys.argv[1])
    show = "--show" in sys.argv
    wanted = [name for name in sys.argv[2:] if name != "--show"]
    failed = []
    for name, make, says, options, path in CASES:
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            root.chmod(0o755)
            result = run(train, root, make, options, path)
            wrong = judge(result, says, root)
            if show:
                text = (result.stderr or result.stdout).replace(str(root) + "/", "").strip()
                print(f"{name}: {result.returncode}: {text}", flush=True)
            if wrong:
                failed.append(f"{name}: {wrong}")
            for folder, _, _ in os.walk(root):
                os.chmod(folder, 0o755)
    print(*failed, sep="\n")
    print(f"{len(CASES) - len(failed)} of {len(CASES)} data sets as expected")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
