#!/usr/bin/env python3
"""Changes queues at random, has a program use each of them, and checks that nothing outside the queue's directory is
read, sent, changed or removed: mutate.py POSTCARD VICTIM COUNT [SEED [FIRST]]

POSTCARD is the program, and VICTIM is PostcardQueueVictim. A failure names the number of its queue. To repeat it, use
COUNT 1, the same SEED, and the number as FIRST. If root starts it, it becomes an unprivileged user first.
"""

import atexit
import contextlib
import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import mutations
import queues

PATIENCE = 120
BATCH = 250
NOBODY = 65534
SECRET = b"canary-" + os.urandom(16).hex().encode()


class Recorder:
    """A server that searches all requests for the secret. It accepts most forms, and answers some with 503."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.secrets = 0
        self.received = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        data = b""
        with connection, contextlib.suppress(OSError):
            connection.settimeout(PATIENCE)
            while not self.is_whole(data):
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                data += piece
            is_busy = hashlib.sha256(data).digest()[0] % 5 == 0
            status = b"503 Service Unavailable" if is_busy else b"201 Created"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        with self.lock:
            self.received += 1
            self.secrets += SECRET in data

    @staticmethod
    def is_whole(data):
        head, separator, body = data.partition(b"\r\n\r\n")
        if not separator:
            return False
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return len(body) >= int(length[1]) if length else not re.search(rb"(?i)\r\ntransfer-encoding", head) \
            or body.endswith(b"0\r\n\r\n")


def give_up_rights(programs):
    """Becomes a user who can run the programs and can change only what this test makes."""
    if os.geteuid() != 0:
        return programs
    own = tempfile.mkdtemp(prefix="postcard-")
    for index, program in enumerate(programs):
        copy = f"{own}/{os.path.basename(program)}"
        readable = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "test", "-x", program]
        if subprocess.run(readable).returncode != 0:
            shutil.copy(program, copy)
            os.chmod(copy, 0o755)
            programs[index] = copy
    os.chown(own, NOBODY, NOBODY)
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    return programs


def make_canary(path, sizes):
    """Makes what must not change: names that a queue uses, files as long as bodies, databases, directories."""
    os.makedirs(f"{path}/inner/{str(uuid.UUID(int=5)).upper()}")
    names = ["secret", "0", "1", "inner/0", "inner/1", str(uuid.UUID(int=7)).upper()]
    names += ["queue.sqlite", "queue.sqlite-wal"]
    names += [f"long-{size}" for size in sizes]
    for name in names:
        size = int(name[5:]) if name.startswith("long-") else 2000
        with open(f"{path}/{name}", "wb") as file:
            file.write((SECRET + b"\n") * (size // (len(SECRET) + 1)))
            file.write(SECRET[: size - file.tell()])
    database = sqlite3.connect(f"{path}/other.sqlite")
    database.executescript(f"CREATE TABLE secret (text); INSERT INTO secret VALUES ('{SECRET.decode()}');")
    database.close()
    os.symlink("secret", f"{path}/link")
    # Long ago: a sweep removes only old files.
    for place, folders, files in os.walk(path, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(place, name), (1_000_000_000, 1_000_000_000), follow_symlinks=False)


def state(path):
    found = {}
    for place, folders, files in os.walk(path):
        for name in ["."] + folders + files:
            file = os.path.normpath(os.path.join(place, name))
            status = os.lstat(file)
            if stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(open(file, "rb").read()).hexdigest()
            else:
                content = os.readlink(file) if stat.S_ISLNK(status.st_mode) else ""
            found[file] = (
                status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns,
                content)
    return found


class Victim:
    """The program that uses the queues, traced if possible."""

    def __init__(self, program, log):
        self.log = log
        trace = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", "trace=%file", "-e", "signal=none", "-o", log]
        self.process = subprocess.Popen(
            (trace if log else []) + [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(os.environ, SWIFT_BACKTRACE="enable=no"), start_new_session=True)
        self.messages = b""
        threading.Thread(target=self.read_messages, daemon=True).start()
        self.answers = b""
        self.expect("ready")

    def read_messages(self):
        for line in self.process.stderr:
            self.messages = (self.messages + line)[-4000:]

    def expect(self, wanted=None):
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.answers:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                self.end(is_failure=True)
                why = "crashed" if ready else f"did not respond within {PATIENCE} seconds"
                messages = self.messages.decode(errors="replace")
                raise Failure(f"the program {why} ({self.process.returncode}): {messages}")
            self.answers += piece
        line, _, self.answers = self.answers.partition(b"\n")
        if wanted and line.decode() != wanted:
            raise Failure(line.decode())
        return line.decode(errors="replace")

    def use(self, folder):
        self.process.stdin.write(folder.encode() + b"\n")
        self.process.stdin.flush()
        return self.expect()

    def end(self, is_failure=False):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(5 if is_failure else PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Failure(Exception):
    pass


# Paths that every program reads: libraries, the time zone, host names, processors.
SYSTEM = re.compile(
    r"/(etc|lib|lib32|lib64|usr|bin|opt|proc|sys|run/systemd/resolve)(/|$)|/dev/(null|u?random|tty|urandom)$|/dev/pts/")
# The folder in which forms that are prepared have their files is listed, to remove what a killed program has left.
PREPARED = re.compile(re.escape(tempfile.gettempdir()) + r"/Postcard-\d+$")
# Calls that do not read or change files.
LOOKS = {"stat", "lstat", "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2", "readlink",
         "readlinkat", "statfs", "getcwd", "inotify_add_watch"}
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$", re.S)
ARGUMENT = re.compile(r'(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"((?:[^"\\]|\\.)*)"')
RESULT = re.compile(r"\)\s+= \d+<([^>]*)>")


def outside(log, root, canary):
    """The calls with a path that is neither in a queue's directory nor one of the system's."""
    found, unfinished, has_begun = [], {}, False
    for line in open(log, errors="replace"):
        line = line.rstrip("\n")
        pid = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[pid] = line[: -len("<unfinished ...>")]
            continue
        resumed = re.match(r"^\d+\s+<\.\.\. \w+ resumed>(.*)$", line)
        if resumed:
            line = unfinished.pop(pid, "") + resumed[1]
        call = CALL.match(line)
        if not call:
            continue
        # Before the first queue, the program loads itself.
        has_begun = has_begun or f"{root}/" in line
        if not has_begun:
            continue
        paths = [os.path.join(place, name) if place else name for place, name in ARGUMENT.findall(call[3])]
        result = RESULT.search(call[3])
        for path in paths + ([result[1]] if result else []):
            clean = path if path in ("", "/") else path.removesuffix("/")
            is_inside = re.match(re.escape(root) + r"/\d+/queue(/|$)", clean) and ".." not in clean.split("/")
            if call[2] in LOOKS:
                if clean.startswith(canary):
                    found.append(line)
            elif PREPARED.match(clean) and "O_RDONLY" in line and "O_DIRECTORY" in line:
                continue
            elif not is_inside and not SYSTEM.match(clean):
                found.append(line)
    return found


def can_trace():
    if not shutil.which("strace"):
        return "strace is not installed"
    trial = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True)
    return None if trial.returncode == 0 else "this machine does not let strace trace programs"


def run_program(postcard, folder):
    """Runs the program's commands, each in a process."""
    commands = [["list"], ["list", "--json"], ["run", "--drain", "--retries", "1", "--max-delay", "0.01"],
                ["retry", "1"], ["cancel", "2"], ["pause"], ["resume"], ["clear"]]
    for command in commands:
        process = subprocess.Popen(
            [postcard, "queue"] + command + ["--queue", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=dict(os.environ, SWIFT_BACKTRACE="enable=no", HOME="/nonexistent"))
        try:
            # The program waits for uploads that are due in a year. It is stopped as a user would stop it.
            _, messages = process.communicate(timeout=5 if command[0] == "run" else PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                _, messages = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Failure(f"postcard queue {' '.join(command)} does not end") from None
        if process.returncode < 0:
            raise Failure(
                f"postcard queue {' '.join(command)} ended by signal {-process.returncode}: {messages[-2000:]}")


def main():
    postcard, program = give_up_rights(sys.argv[1:3])
    count = int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 31)
    first = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    # If the test times out, end the program and remove the files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    problem = can_trace()
    print(f"seed {seed}" + (f"; without a trace: {problem}" if problem else ""), flush=True)
    shared = "/dev/shm"
    base = tempfile.mkdtemp(prefix="postcard-", dir=shared if os.access(shared, os.W_OK) else None)
    os.chmod(base, 0o755)
    recorder = Recorder()
    answers, number, made = {}, first, "nothing"
    victim = None
    try:
        originals = queues.make(f"{base}/templates", postcard, recorder.port)
        sizes = {os.path.getsize(f"{place}/{name}") for place, _, names in os.walk(f"{base}/templates")
                 for name in names if len(name) == 36}
        canary = f"{base}/canary"
        make_canary(canary, sizes)
        before = state(canary)
        while number < first + count:
            log = None if problem else f"{base}/trace"
            victim = Victim(program, log)
            for number in range(number, min(number + BATCH, first + count)):
                folder = f"{base}/queues/{number}/queue"
                made = mutations.make(folder, originals, canary, random.Random(f"{seed}/{number}"))
                answer = victim.use(folder)
                answers[answer.split(":")[0]] = answers.get(answer.split(":")[0], 0) + 1
                if os.environ.get("POSTCARD_VERBOSE"):
                    print(number, made, answer, flush=True)
                if number % 20 == 0:
                    mutations.make(f"{folder}", originals, canary, random.Random(f"{seed}/{number}"))
                    run_program(postcard, folder)
                if state(canary) != before:
                    raise Failure(f"the canary changed: {set(before.items()) ^ set(state(canary).items())}")
                if recorder.secrets:
                    raise Failure("the canary was sent")
                mutations.remove(f"{base}/queues/{number}")
            number += 1
            victim.end()
            if victim.process.returncode != 0:
                raise Failure(f"the program ended with {victim.process.returncode}: {victim.messages}")
            strays = outside(log, f"{base}/queues", canary) if log else []
            if strays:
                made = "one of the last batch"
                raise Failure(f"{len(strays)} calls with paths outside:\n" + "\n".join(strays[:20]))
        print(f"{count} queues: {json.dumps(answers)}; {recorder.received} requests arrived")
        if count >= 50 and not (recorder.received and answers.get("used")):
            raise Failure("no queue was used")
    except Failure as failure:
        sys.exit(f"queue {number} of seed {seed} ({made}): {failure}")
    finally:
        if victim:
            victim.end(is_failure=True)
        mutations.remove(base)


if __name__ == "__main__":
    main()
