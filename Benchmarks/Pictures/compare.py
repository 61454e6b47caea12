#!/usr/bin/env python3
"""Compares PostcardPictures with ImageMagick's jpeg:extent: compare.py FITTING PICTURES [LIMIT…]

FITTING is the built program `fitting`, PICTURES a folder that generate.py filled. For every picture and limit it checks
that the result is within the limit, upright and of quality 50 at least, and compares it with the JPEG that ImageMagick
makes of the same size with at most as many bytes: which of both is more like the original, turned and scaled by
ImageMagick without loss (SSIM of the luma, windows of 8 pixels). It exits with 1 if anything is wrong.
"""

import collections
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy
from PIL import Image

Image.MAX_IMAGE_PIXELS = None
CONVERT = "/usr/bin/convert"
EDGE = 2560


def means(values):
    """The mean of every window of 8 pixels."""
    size = [min(8, length) for length in values.shape]
    sums = numpy.pad(values.cumsum(0, dtype=numpy.float64).cumsum(1), ((1, 0), (1, 0)))
    y, x = size
    return (sums[y:, x:] - sums[:-y, x:] - sums[y:, :-x] + sums[:-y, :-x]) / (x * y)


def ssim(one, other):
    a, b = (numpy.asarray(image.convert("L"), numpy.float32) for image in (one, other))
    mean_a, mean_b = means(a), means(b)
    variance_a, variance_b = means(a * a) - mean_a ** 2, means(b * b) - mean_b ** 2
    covariance = means(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(numpy.mean(((2 * mean_a * mean_b + c1) * (2 * covariance + c2)) /
                            ((mean_a ** 2 + mean_b ** 2 + c1) * (variance_a + variance_b + c2))))


def quality(path):
    """The quality of a JPEG, as ImageMagick estimates it by its tables."""
    found = subprocess.run(["/usr/bin/identify", "-format", "%Q", path], capture_output=True, text=True, check=True)
    return int(found.stdout)


def over_white(path):
    """A transparent picture over white, rounded. ImageMagick is off by one, which shows in what is nearly flat."""
    pixels = numpy.asarray(Image.open(path).convert("RGBA"), numpy.float32)
    alpha = pixels[..., 3:] / 255
    image = Image.fromarray((pixels[..., :3] * alpha + 255 * (1 - alpha)).round().astype(numpy.uint8))
    output = io.BytesIO()
    image.save(output, "PPM")
    return output.getvalue()


class References:
    """The originals, upright and scaled by ImageMagick without loss."""

    def __init__(self):
        self.known = {}

    def of(self, path, size):
        if (path, size) not in self.known:
            self.known = {key: value for key, value in self.known.items() if key[0] == path}
            source = path if not path.endswith("misnamed.png") else "jpeg:" + path
            # Without a filter named, a picture with a palette gets a softer one.
            scaling = ["-filter", "Lanczos", "-resize", f"{size[0]}x{size[1]}!", "-depth", "8", "ppm:-"]
            if "transparent" in path:
                arguments, given = [CONVERT, "ppm:-", *scaling], over_white(path)
            else:
                upright = [source + "[0]", "-auto-orient", "-colorspace", "sRGB", "-strip"]
                arguments, given = [CONVERT, *upright, *scaling], b""
            pixels = subprocess.run(arguments, input=given, capture_output=True, check=True).stdout
            self.known[path, size] = pixels
        return self.known[path, size]


def extent(pixels, count, is_grey):
    """What ImageMagick makes of the pixels with a number of bytes at most."""
    arguments = [CONVERT, "ppm:-", *(["-colorspace", "gray"] if is_grey else []), "-define", f"jpeg:extent={count}b",
                 "jpeg:-"]
    return subprocess.run(arguments, input=pixels, capture_output=True, check=True).stdout


def main(program, folder, limits):
    names = sorted(name for name in os.listdir(folder) if name[0].isdigit())
    paths = [os.path.join(folder, name) for name in names]
    references, faults, gains, tally = References(), [], [], collections.Counter()
    encodings, qualities, seconds = [], [], 0.0
    with tempfile.TemporaryDirectory() as results:
        for path in paths:
            for limit in limits:
                output = subprocess.run([program, str(limit), str(EDGE), results, path], capture_output=True, text=True)
                where = f"{os.path.basename(path)} to {limit}"
                if output.returncode != 0:
                    faults.append(f"{where}: exit {output.returncode} {output.stderr[-300:]}")
                    continue
                found = json.loads(output.stdout)
                seconds += found["seconds"]
                if "code" in found:
                    tally[found["code"]] += 1
                    faults.append(f"{where}: {found['message']}")
                    continue
                size = (found["width"], found["height"])
                if found["bytes"] > limit or os.path.getsize(found["result"]) != found["bytes"] or max(size) > EDGE:
                    faults.append(f"{where}: {found['bytes']} bytes, {size}")
                if found["isOriginal"]:
                    tally["original"] += 1
                    continue
                tally["encoded"] += 1
                tally[f"edge {max(size)}"] += 1
                encodings.append(found["encodings"])
                qualities.append(found["quality"])
                if not 50 <= found["quality"] <= 82 or abs(quality(found["result"]) - found["quality"]) > 1:
                    faults.append(f"{where}: quality {found['quality']}, by its tables {quality(found['result'])}")
                with Image.open(found["result"]) as ours:
                    ours.load()
                if ours.size != size or ours.getexif():
                    faults.append(f"{where}: {ours.size}, EXIF {dict(ours.getexif())}")
                if ("-p3" in path) != ("icc_profile" in ours.info):
                    faults.append(f"{where}: color profile {'lost' if '-p3' in path else 'made up'}")
                pixels = references.of(path, size)
                with Image.open(io.BytesIO(pixels)) as reference:
                    reference.load()
                theirs_bytes = extent(pixels, found["bytes"], ours.mode == "L")
                with Image.open(io.BytesIO(theirs_bytes)) as theirs:
                    theirs.load()
                mine, other = ssim(ours, reference), ssim(theirs, reference)
                os.remove(found["result"])
                gains.append(mine - other)
                # More than 2 % larger: ImageMagick did not keep the limit itself.
                note = "" if len(theirs_bytes) <= found["bytes"] * 1.02 else " (over)"
                print(f"{where}: {size[0]}x{size[1]} q{found['quality']} {found['bytes']} bytes in "
                      f"{found['encodings']} encodings; SSIM {mine:.4f}, ImageMagick {other:.4f}{note}", flush=True)
                # The bytes of a few pixels are headers, and ours have quality 82 at most.
                if mine < other - 0.0005 and not note and size[0] * size[1] >= 64:
                    faults.append(f"{where}: SSIM {mine:.4f} is below ImageMagick's {other:.4f}")
    print(dict(tally))
    print(f"encodings {numpy.mean(encodings):.2f} on average, at most {max(encodings)}; quality {min(qualities)} to "
          f"{max(qualities)}; {seconds:.1f} s in all")
    print(f"SSIM above ImageMagick's by {numpy.mean(gains):+.4f} on average, {min(gains):+.4f} to {max(gains):+.4f}")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], [int(limit) for limit in sys.argv[3:]] or [200_000, 1_000_000, 5_000_000]))
