#!/usr/bin/env python3
"""Draws the 100 pictures of compare.py: generate.py FOLDER

Sizes from 1 pixel to 48 megapixels, contents from flat to noise, and every kind of file that PostcardPictures reads.
It needs Pillow, numpy, ImageMagick, libheif with its headers, a C compiler, cwebp and exiftool.
"""

import os
import struct
import subprocess
import sys

import numpy
from PIL import Image, ImageDraw

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def draw(content, width, height, seed):
    """A picture: flat, gradient, drawing (sharp edges and text), photo, grainy (a photo in the dark) or noise."""
    random = numpy.random.default_rng(seed)
    if content == "flat":
        pixels = numpy.empty((height, width, 3), numpy.uint8)
        pixels[...] = random.integers(0, 256, 3)
        return Image.fromarray(pixels)
    if content == "gradient":
        x = numpy.linspace(0, 1, width, dtype=numpy.float32)[None, :, None]
        y = numpy.linspace(0, 1, height, dtype=numpy.float32)[:, None, None]
        corner = random.integers(0, 256, (3, 3)).astype(numpy.float32)
        return Image.fromarray((corner[0] * (1 - x) * (1 - y) + corner[1] * x + corner[2] * y * (1 - x)).clip(0, 255)
                               .astype(numpy.uint8))
    if content == "noise":
        return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=numpy.uint8))
    if content == "drawing":
        image = Image.new("RGB", (width, height), tuple(int(c) for c in random.integers(180, 256, 3)))
        pen = ImageDraw.Draw(image)
        for index in range(60):
            x, y = int(random.integers(0, width)), int(random.integers(0, height))
            size = int(random.integers(1, max(2, min(width, height) // 4)))
            color = tuple(int(c) for c in random.integers(0, 256, 3))
            if index % 3 == 0:
                pen.rectangle((x, y, x + size, y + size), fill=color)
            elif index % 3 == 1:
                pen.ellipse((x, y, x + size, y + size), outline=color, width=max(1, size // 20))
            else:
                pen.text((x, y), "Postcard from Jeju, 3 June", fill=color)
        return image
    # 1/f noise has the spectrum of photos; discs are its objects, and the sensor adds grain.
    rows = numpy.fft.fftfreq(height)[:, None].astype(numpy.float32)
    columns = numpy.fft.rfftfreq(width)[None, :].astype(numpy.float32)
    frequency = numpy.sqrt(rows * rows + columns * columns)
    frequency[0, 0] = 1
    scene = numpy.empty((height, width, 3), numpy.float32)
    base = None
    for channel in range(3):
        spectrum = numpy.fft.rfft2(random.standard_normal((height, width), dtype=numpy.float32)) / frequency ** 1.2
        layer = numpy.fft.irfft2(spectrum, s=(height, width))
        layer = (layer - layer.mean()) / max(layer.std(), 1e-6)
        base = layer if base is None else base
        scene[..., channel] = 128 + 45 * (0.8 * base + 0.2 * layer)
    for _ in range(30):
        radius = int(random.integers(2, max(3, min(width, height) // 6)))
        x, y = int(random.integers(0, width)), int(random.integers(0, height))
        top, left = max(y - radius, 0), max(x - radius, 0)
        part = scene[top:y + radius, left:x + radius]
        dy, dx = numpy.ogrid[top - y:top - y + part.shape[0], left - x:left - x + part.shape[1]]
        inside = dx * dx + dy * dy < radius * radius
        part[inside] = part[inside] * 0.4 + random.integers(0, 256, 3) * 0.6
    scene += random.standard_normal((height, width, 1), dtype=numpy.float32) * (14 if content == "grainy" else 2.5)
    return Image.fromarray(scene.clip(0, 255).astype(numpy.uint8))


def display_p3():
    """A small ICC profile of Display P3 (ICC.1:2001, matrix and one curve)."""
    def fixed(number):
        return struct.pack(">i", round(number * 65536))

    def xyz(*numbers):
        return b"XYZ \0\0\0\0" + b"".join(fixed(number) for number in numbers)

    text = b"Display P3\0"
    description = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + bytes(78)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(2.2 * 256)) + b"\0\0"
    tags = [(b"desc", description), (b"cprt", b"text\0\0\0\0none\0"), (b"wtpt", xyz(0.9642, 1, 0.8249)),
            (b"rXYZ", xyz(0.5151, 0.2412, -0.0011)), (b"gXYZ", xyz(0.2919, 0.6922, 0.0419)),
            (b"bXYZ", xyz(0.1572, 0.0666, 0.7841)), (b"rTRC", curve), (b"gTRC", curve), (b"bTRC", curve)]
    table, data, offset = b"", b"", 128 + 4 + 12 * len(tags)
    for name, value in tags:
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", offset + len(data), len(value))
        data += value
    body = struct.pack(">I", len(tags)) + table + data
    head = struct.pack(">I4sI4s4s4s12x4s4s", 128 + len(body), b"none", 0x02100000, b"mntr", b"RGB ", b"XYZ ", b"acsp",
                       b"APPL")
    head += bytes(68 - len(head)) + fixed(0.9642) + fixed(1) + fixed(0.8249)
    return head + bytes(128 - len(head)) + body


# Name, content, width, height, kind, and what the kind needs.
M12, M48, M24 = (4032, 3024), (8064, 6048), (6000, 4000)
PICTURES = []


def add(content, size, kind, *more):
    PICTURES.append((content, size, kind, more))


for orientation in range(1, 9):
    add("photo", (3000, 2000), "jpeg", orientation)
    add("drawing", (1203, 901), "jpeg", orientation)
    add("photo", (1501, 1003), "heic", orientation)
for content in ("flat", "gradient", "drawing", "photo", "grainy", "noise"):
    add(content, M12, "jpeg", 1)
    add(content, (2560, 1707), "jpeg", 1)
    add(content, (640, 480), "jpeg", 6)
    add(content, (2000, 1500), "png")
    add(content, (1800, 2700), "webp")
for size in ((1, 1), (2, 3), (7, 5), (16, 16), (17, 4000), (5000, 3), (100, 75), (9000, 1200)):
    add("drawing", size, "jpeg", 1)
    add("photo", size, "png")
add("photo", M48, "jpeg", 6)
add("noise", M48, "jpeg", 1)
add("flat", M48, "jpeg", 8)
add("photo", M48, "progressive", 3)
add("photo", M24, "jpeg", 5)
add("photo", M12, "progressive", 7)
add("grainy", (3000, 2250), "progressive", 1)
add("photo", M12, "heic", 6)
add("grainy", (3000, 2250), "heic", 1)
add("photo", M12, "grey", 6)
add("drawing", (1600, 1200), "grey", 1)
add("photo", (3000, 2000), "cmyk", 1)
add("drawing", (2000, 2600), "cmyk", 1)
add("photo", M12, "p3", 6)
add("grainy", (2560, 1920), "p3", 1)
add("drawing", (3000, 3000), "transparent")
add("photo", (2700, 1800), "transparent")
add("photo", (3000, 2000), "png16")
add("drawing", (2800, 1900), "palette")
add("photo", (2600, 2600), "interlaced")
add("photo", (3100, 2300), "greypng")
add("drawing", (2900, 1400), "transparentwebp")
add("drawing", (2800, 2100), "losslesswebp")
add("photo", (3264, 2448), "444")
add("photo", (2800, 2100), "p3png")
add("photo", M12, "webp")
add("grainy", M12, "heic", 3)
add("noise", (1200, 900), "heic", 1)
add("photo", (3000, 2000), "avif")
add("drawing", (2560, 2560), "misnamed")


def oriented(path, orientation):
    if orientation != 1:
        run("exiftool", "-q", "-n", "-overwrite_original", f"-Orientation={orientation}", path)


def faded(image):
    width, height = image.size
    alpha = Image.linear_gradient("L").resize((width, height))
    image.putalpha(alpha)
    return image


def write(image, folder, name, kind, more):
    path = os.path.join(folder, name)
    plain = path + ".ppm"
    if kind in ("jpeg", "progressive", "grey", "p3", "444"):
        options = {"quality": 93, "progressive": kind == "progressive"}
        if kind == "p3":
            options["icc_profile"] = display_p3()
        if kind == "444":
            options["subsampling"] = 0
        image = image.convert("L") if kind == "grey" else image
        image.save(path + ".jpg", **options)
        oriented(path + ".jpg", more[0] if more else 1)
    elif kind == "cmyk":
        image.convert("CMYK").save(path + ".jpg", quality=92)
    elif kind == "heic":
        image.save(plain)
        run(os.path.join(folder, "turned_heif"), more[0], 70, plain, path + ".heic")
        os.remove(plain)
    elif kind == "avif":
        image.save(path + ".png", compress_level=1)
        run("heif-enc", "-A", "-q", 60, "-p", "speed=9", path + ".png", "-o", path + ".avif")
        os.remove(path + ".png")
    elif kind == "misnamed":
        image.save(path + ".png", format="JPEG", quality=95)
    elif kind == "webp":
        image.save(path + ".webp", quality=88, method=0)
    elif kind == "transparentwebp":
        faded(image).save(path + ".webp", quality=88, method=0)
    elif kind == "losslesswebp":
        image.save(path + ".webp", lossless=True, method=0, quality=10)
    elif kind == "png16":
        image.save(plain)
        run("/usr/bin/convert", plain, "-depth", 16, "-resize", "99.9%", f"PNG48:{path}.png")
        os.remove(plain)
    elif kind == "interlaced":
        image.save(plain)
        run("/usr/bin/convert", plain, "-interlace", "PNG", f"PNG24:{path}.png")
        os.remove(plain)
    else:
        if kind == "transparent":
            image = faded(image)
        elif kind == "palette":
            image = image.quantize(200)
        elif kind == "greypng":
            image = image.convert("L")
        profile = {"icc_profile": display_p3()} if kind == "p3png" else {}
        image.save(path + ".png", compress_level=1, **profile)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    run("cc", "-O2", os.path.join(HERE, "turned_heif.c"), "-lheif", "-o", os.path.join(folder, "turned_heif"))
    for index, (content, size, kind, more) in enumerate(PICTURES):
        name = "-".join([f"{index:03}", content, f"{size[0]}x{size[1]}", kind, *map(str, more)])
        if not any(entry.startswith(name + ".") for entry in os.listdir(folder)):
            write(draw(content, *size, index), folder, name, kind, more)
    os.remove(os.path.join(folder, "turned_heif"))
    print(f"{len(PICTURES)} pictures in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
