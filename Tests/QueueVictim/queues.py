"""Queues that the program made, and odd values for them."""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import uuid

COMPANIONS = ["queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal"]


def make(path, postcard, port):
    """Makes queues with uploads in all states, one of them with its latest changes in the log."""
    os.makedirs(path)
    address = f"http://127.0.0.1:{port}/uploads"
    for name in ("plain", "wal"):
        for number in range(4):
            options = ["--group", "g"] if number == 3 else ["-H", "X-Tag: 1"]
            subprocess.run(
                [postcard, "queue", "add", address, "-F", f"name={'x' * 10 * number}", "-F", "file=@-;filename=a.txt",
                 "--queue", f"{path}/{name}"] + options, input=b"content" * 50, check=True, stdout=subprocess.DEVNULL)
        database = sqlite3.connect(f"{path}/{name}/queue.sqlite")
        database.executescript("""
            UPDATE upload SET state = 'done', schedule = NULL WHERE id = 2;
            INSERT INTO response VALUES (2, 201, x'5b5d', x'6f6b');
            UPDATE upload SET state = 'failed', schedule = NULL, reason = 'why', attempts = 1 WHERE id = 3;
            INSERT INTO delivery VALUES (3, 1);
        """)
        if name == "plain":
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            # Copied while it is open, so that the latest changes are only in the log.
            shutil.copytree(f"{path}/wal", f"{path}/live")
        database.close()
    shutil.rmtree(f"{path}/wal")
    return [f"{path}/{name}" for name in ("plain", "plain", "plain", "live")]


class Queue:
    def __init__(self, folder, canary, chance):
        self.folder = folder
        self.canary = canary
        self.chance = chance
        self.database = f"{folder}/queue.sqlite"

    def own(self, path):
        """Checks that no link leads out of the queue's directory, because the test must not change other files."""
        parent = os.path.dirname(path)
        if os.path.realpath(parent) != parent or not (parent + "/").startswith(self.folder + "/"):
            raise OSError(f"{path} leads elsewhere")
        return path

    def own_file(self, path):
        status = os.lstat(self.own(path))
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(f"{path} is not a file of the queue")
        return path

    @contextlib.contextmanager
    def connected(self):
        for name in ["queue.sqlite"] + COMPANIONS:
            if os.path.lexists(f"{self.folder}/{name}"):
                self.own_file(f"{self.folder}/{name}")
        if os.path.exists(f"{self.folder}/queue.sqlite-journal"):
            raise OSError("SQLite would use the journal")
        database = sqlite3.connect(self.database, timeout=1, isolation_level=None)
        try:
            # Earlier changes may have made queries endless.
            steps = iter(range(2000))
            database.set_progress_handler(lambda: next(steps, None) is None, 1000)
            database.execute("PRAGMA foreign_keys = OFF")
            yield database
        finally:
            database.close()

    def target(self):
        """A path outside the queue."""
        return self.chance.choice(
            [f"{self.canary}/secret", self.canary, f"{self.canary}/inner", f"{self.canary}/inner/0", "/etc/passwd",
             f"{self.canary}/nothing", f"{self.canary}/other.sqlite", f"{self.canary}/queue.sqlite"]
            + [f"{self.canary}/{name}" for name in os.listdir(self.canary) if name.startswith("long-")])

    def relative(self):
        names = ["canary", "canary/secret", "canary/inner/0", ""]
        return "../" * self.chance.randrange(1, 4) + self.chance.choice(names)

    def body(self):
        names = os.listdir(self.own(f"{self.folder}/bodies"))
        if not names:
            raise OSError("there is no body")
        return self.own(f"{self.folder}/bodies/{self.chance.choice(sorted(names))}")


def odd_value(queue):
    """An odd value of any type."""
    chance = queue.chance
    other = str(uuid.UUID(int=chance.getrandbits(128))).upper()
    return chance.choice([
        None, 0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63), 1 << 50, (1 << 50) + 1, 0.5, -0.0, 1e308, -1e308,
        float("inf"), float("-inf"), 1e18, "", "x", "waiting", "sending", "retrying", "paused", "done",
        "failed", "cancelled",
        "strange",
        b"", b"\0", b"\xff\xfe", b"waiting", b"done", b"failed", "\0", "a\0b", "../canary/secret", queue.relative(),
        queue.target(), "file://" + queue.target(), "http://127.0.0.1:1/", "http://127.0.0.1:99999999999999999999/",
        "http://[::1]:1/", "http+unix://%2Ftmp%2Fx/", "https+unix://" + queue.target().replace("/", "%2F"),
        "http://a b/", "http://%00/", "//", "http://", "http://user:pass@127.0.0.1:1/../..", "x" * 100_000, "é" * 1000,
        "\r\nX: y", "a\r\n\r\nb", "1", "-1", "9" * 100, "1e999", "NaN", "[]", "{}", "[" * 100_000, '{"a":' * 10_000,
        b"[]", b"{}", b"[" * 100_000, b'[{"name":"a","offset":0,"length":0}]', b'[{"name":"a","offset":-1,"length":5}]',
        b'[{"name":"a","offset":9223372036854775807,"length":9223372036854775807}]',
        b'[{"name":"a","offset":1e400,"length":5}]', b'[{"name":"a","filename":"../x","offset":10,"length":5}]',
        b'[{"name":"a","offset":50,"length":5},{"name":"b","offset":10,"length":5}]',
        b'[{"name":"a","offset":0,"length":1}]' * 2, b'[{"name":"Host","value":"a"},{"name":"a b","value":"c\\r\\nd"}]',
        b'[{"name":"X","value":"\\ud800"}]', b'[{"name":"' + b"x" * 100_000 + b'","value":"y"}]', b"\xef\xbb\xbf[]",
        '"' + "\\u0000" * 100 + '"', other, other.lower(), "{" + other + "}", other.encode(), other + "/../../canary",
        "multipart/form-data; boundary=" + "b" * 200, bytes(chance.getrandbits(8) for _ in range(40)),
        "\ud7ff\U0010ffff", "1" + "\u0301", "\u0661",
    ])
