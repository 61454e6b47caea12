"""Links that change bytes: each is noticed by the digests of RFC 9530, and repaired or refused."""

import base64
import hashlib
import random
from functools import partial

from bench import KILOBYTES, MEGABYTES
from links import with_bench
from programs import expect
from relay import Relay
from wire import FORM_TYPE, KeptWire, Lost

# Longer than the head of a request, so that the flipped byte is in the body.
HEAD = 4_000
FORMS_THROUGH_A_LINK = 20


class Flip:
    """Flips a byte of the next connections, one in each, at a random offset below a size."""

    def __init__(self, size, count):
        self.chance = random.Random(size)
        self.size, self.left, self.flipped = size, count, 0
        self.next = self.chance.randrange(HEAD, size)

    def __call__(self, content, offset):
        index = self.next - offset
        if not self.left or not 0 <= index < len(content):
            return content
        self.left -= 1
        self.flipped += 1
        self.next = self.chance.randrange(HEAD, self.size)
        changed = bytearray(content)
        changed[index] ^= 1 << self.chance.randrange(8)
        return bytes(changed)


def repaired(bench):
    """A byte of each form is flipped once, and the client sends again what the receiver refused."""
    count = 0
    for index in range(FORMS_THROUGH_A_LINK):
        size = MEGABYTES if index % 2 else KILOBYTES
        flip = Flip(size, 1)
        with Relay(bench.front.port, flip=flip) as relay:
            sending, caption = bench.send(size, "--resumable", "--digests", "--retries", "5", relay=relay)
        expect(sending.exit_status == 0, str(sending))
        expect(sending.report.get("verified"), "the response is not verified")
        bench.expect_stored(caption, size)
        expect(flip.flipped > 0, "no byte was flipped")
        count += flip.flipped
    return f"{count} flipped bytes in {FORMS_THROUGH_A_LINK} forms, all repaired"


def refused(bench, count):
    """Forms of which a byte is flipped in each are sent with the digest of what they were."""
    chance = random.Random(count)
    wire = KeptWire(bench.front.port)
    for index in range(count):
        body, caption = bench.raw_form_of(chance.randbytes(200))
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        changed = bytearray(body)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        field = chance.choice(["Content-Digest", "Repr-Digest"])
        try:
            response = wire.request(
                "POST", "/uploads", [("Content-Type", FORM_TYPE), (field, f"sha-256=:{digest}:")], bytes(changed))
            expect(400 <= response.status < 500, f"form {index}: {response.status} for a flipped byte, {caption}")
        except Lost as lost:
            # A refusal may close the connection, but says why first.
            expect(False, f"form {index}: {lost}")
    wire.close()
    expect(bench.receiver.records() == [], "a form with a flipped byte was stored")
    return f"{count} flipped bytes, all refused"


def run(options):
    if not options.program.has("send", "--digests"):
        print("flips: left out, the program sends no digests")
        return True
    count = 2_000 if options.quick else 100_000
    return all([
        with_bench(options, "flipped bytes, repaired", "direct", repaired),
        with_bench(options, "flipped bytes, refused", "direct", partial(refused, count=count)),
    ])
