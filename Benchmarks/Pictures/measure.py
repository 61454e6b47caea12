#!/usr/bin/env python3
"""Measures 12 megapixels to less than 1 MB: measure.py FITTING PICTURES [ROUNDS]

PostcardPictures, libvips, Pillow and ImageMagick, each in a process of its own and in turns, on the same pictures: a
photo and a grainy one in JPEG, and one in HEIC. libvips and Pillow have no limit of bytes, so they encode once with
quality 75, which fits. It prints the median of the time and the processor's time, and the most memory.
"""

import glob
import os
import statistics
import sys
import tempfile
import time

PILLOW = """
import io, sys
from PIL import Image, ImageOps
image = ImageOps.exif_transpose(Image.open(sys.argv[1]))
image.thumbnail((2560, 2560), Image.LANCZOS)
image.save(sys.argv[2], quality=75, optimize=True)
"""


def measure(command):
    """The seconds, the processor's seconds and the MiB of a command."""
    started = time.monotonic()
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        return None
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(program, folder, rounds):
    pictures = [sorted(glob.glob(os.path.join(folder, pattern)))[0]
                for pattern in ("*-photo-4032x3024-p3-*", "*-grainy-4032x3024-jpeg-*", "*-photo-4032x3024-heic-*")]
    with tempfile.TemporaryDirectory() as results:
        for picture in pictures:
            output = os.path.join(results, "out.jpg")
            commands = {
                "PostcardPictures": [program, "1000000", "2560", results, picture],
                "libvips": ["vipsthumbnail", picture, "--size", "2560x2560", "-o", output + "[Q=75,optimize-coding]"],
                "Pillow": ["/usr/bin/python3", "-c", PILLOW, picture, output],
                "ImageMagick": ["/usr/bin/convert", picture, "-auto-orient", "-resize", "2560x2560", "-define",
                                "jpeg:extent=1000000b", output],
            }
            found = {name: [] for name in commands}
            for _ in range(rounds):
                for name, command in commands.items():
                    found[name].append(measure(command))
            print(os.path.basename(picture))
            for name, runs in found.items():
                if None in runs:
                    print(f"  {name:17} cannot read it")
                    continue
                wall, processor, memory = (statistics.median(column) for column in zip(*runs))
                print(f"  {name:17} {wall:5.2f} s  {processor:5.2f} s of processor  {memory:5.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5)
