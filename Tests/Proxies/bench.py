"""A receiver with something in front of it, and what sends to it."""

import hashlib
import json
import os
import random
import threading

from programs import Sending, expect, run_program
from wire import form


KILOBYTES, MEGABYTES, HUNDREDS = 20_000, 5_000_000, 200_000_000


def time_for(size):
    """How long a program may take to send a form before it counts as stuck."""
    return 30 + size / 5_000_000


class Bench:
    """A receiver with something in front of it, and what sends to it."""

    def __init__(self, program, receiver, front, samples, trust, folder):
        self.program, self.receiver, self.front = program, receiver, front
        self.samples, self.trust, self.folder = samples, trust, folder
        self.count = 0

    @property
    def is_secure(self):
        return self.front.url.startswith("https")

    @property
    def keeps_events(self):
        return self.front.kind.keeps_events if hasattr(self.front, "kind") else False

    def caption(self):
        self.count += 1
        return f"{self.front.name} {self.count} {random.randbytes(4).hex()}"

    def url(self, relay=None):
        return self.front.url.replace(f":{self.front.port}", f":{relay.port}") if relay else self.front.url

    def run(self, arguments, seconds):
        """Runs the program, which trusts the certificate of the check."""
        command = [self.program.path, *arguments]
        if not self.is_secure:
            return run_program(command, seconds)
        return run_program([*self.trust.command(), *command], seconds, self.trust.environment())

    def send(self, size, *options, relay=None, file="f", seconds=None):
        """Runs `postcard send`. Gives its outcome and the caption of the form."""
        caption = self.caption()
        ended, duration = self.run(
            ["send", "--json", "-F", f"caption={caption}", "-F", f"{file}=@{self.samples.path(size)};filename=f",
             *options, self.url(relay) + "/uploads"], seconds or time_for(size))
        return Sending(ended, duration), caption

    def queue(self, size, relay=None, file="f", seconds=None):
        """Runs `postcard queue add` and `run --drain`. Gives its report, the seconds and the caption."""
        caption = self.caption()
        folder = os.path.join(self.folder, f"queue-{self.front.name}-{self.count}")
        ended, _ = self.run(
            ["queue", "add", "--queue", folder, "-F", f"caption={caption}", "-F",
             f"{file}=@{self.samples.path(size)};filename=f", self.url(relay) + "/uploads"], 60)
        expect(ended.returncode == 0, f"queue add: {ended.stderr[-300:]}")
        ended, duration = self.run(
            ["queue", "run", "--queue", folder, "--drain", "--retries", "1000", "--max-delay", "1"], seconds or time_for(size))
        expect(ended.returncode == 0, f"queue run: exit status {ended.returncode}, {ended.stderr[-300:]}")
        listed, _ = self.run(["queue", "list", "--queue", folder, "--json"], 60)
        (report,) = json.loads(listed.stdout)
        return report, duration, caption

    def raw_form(self, size, file="f"):
        return self.raw_form_of(self.samples.content(size), file)

    def raw_form_of(self, content, file="f"):
        caption = self.caption()
        return form(caption, content, file), caption

    def expect_stored(self, caption, size):
        digests = self.receiver.take(caption)
        expect(len(digests) == 1, f"stored {len(digests)} times")
        expect(digests == [self.samples.digest(size)], "stored with another SHA-256")

    def expect_not_stored(self, caption):
        expect(self.receiver.take(caption) == [], "stored although it was refused")


class Samples:
    """Files of random bytes, with their digests."""

    def __init__(self, folder):
        self.folder = folder
        self.digests = {}
        self.lock = threading.Lock()

    def path(self, size):
        path = os.path.join(self.folder, f"sample-{size}")
        with self.lock:
            if not os.path.exists(path):
                with open(path, "wb") as file:
                    for start in range(0, size, 1 << 24):
                        file.write(os.urandom(min(1 << 24, size - start)))
        return path

    def content(self, size):
        with open(self.path(size), "rb") as file:
            return file.read()

    def digest(self, size):
        if size not in self.digests:
            with open(self.path(size), "rb") as file:
                self.digests[size] = hashlib.sha256(file.read()).hexdigest()
        return self.digests[size]
