"""The programs that a check starts: the receiver, what sends to it, and their certificate."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request


class Failed(Exception):
    """What a case did not do."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def wait_until(condition, seconds, what):
    """Waits for a condition, which may throw OSError until it is true."""
    end = time.monotonic() + seconds
    while True:
        try:
            if result := condition():
                return result
        except OSError:
            pass
        if time.monotonic() > end:
            raise Failed(what)
        time.sleep(0.02)


def listens(port):
    try:
        return accepts(port)
    except OSError:
        return False


def accepts(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class Process:
    """A program with its children, in a group of their own. Its output goes to a file."""
    running = set()
    # Whether an interrupted check ends, and starts nothing any more.
    is_ending = False
    lock = threading.RLock()

    @classmethod
    def kill_all(cls):
        with cls.lock:
            cls.is_ending = True
            for each in [*cls.running, *senders]:
                each.kill()

    def __init__(self, command, log, environment=None):
        self.command, self.log, self.environment = command, log, environment
        self.process = None

    def start(self):
        with Process.lock, open(self.log, "ab") as log:
            expect(not Process.is_ending, "the check was interrupted")
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **(self.environment or {})})
            Process.running.add(self)

    def kill(self):
        Process.running.discard(self)
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process = None

    def wait_for_port(self, port, seconds=15):
        def is_ready():
            if self.process.poll() is not None:
                raise Failed(f"{self.command[0]} ended with {self.process.returncode}: {self.last_lines()}")
            return accepts(port)
        try:
            wait_until(is_ready, seconds, f"{self.command[0]} does not listen: {self.last_lines()}")
        except Failed:
            self.kill()
            raise

    def last_lines(self):
        with open(self.log, errors="replace") as log:
            return log.read()[-600:].strip()


class Receiver:
    """`postcard serve`, which can be killed and started again on the same port."""

    def __init__(self, program, folder, options=()):
        os.makedirs(folder, exist_ok=True)
        self.port = free_port()
        self.directory = os.path.join(folder, "received")
        self.process = Process(
            [program, "serve", "--port", str(self.port), "--directory", self.directory, "--log-level", "info",
             *options],
            os.path.join(folder, "receiver.log"))
        self.start()

    def start(self):
        self.process.start()
        self.process.wait_for_port(self.port)

    def kill(self):
        self.process.kill()

    def request_count(self):
        """The number of requests so far, whether they were answered or cut."""
        with open(self.process.log, errors="replace") as log:
            return len(re.findall(r"Answered a request$|A request was not answered$", log.read(), re.MULTILINE))

    def requests_since(self, count):
        """The methods and statuses of the requests after the first ones."""
        with open(self.process.log, errors="replace") as log:
            lines = re.findall(r".*(?:Answered a request|A request was not answered)$", log.read(), re.MULTILINE)
        shown = [re.search(r"method=(\S+).*?(?:status=(\d+)|$)", line) for line in lines[count:]]
        return [f"{each.group(1)} {each.group(2) or 'cut'}" for each in shown if each]

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as response:
            return json.load(response)

    def records(self):
        records, after = [], ""
        while after is not None:
            page = self.get("/uploads?limit=100" + (f"&after={after}" if after else ""))
            records += page["uploads"]
            after = page["next"]
        return records

    def take(self, caption):
        """The digests of the files of all records with this caption, which are deleted."""
        found = [each for each in self.records() if {"name": "caption", "value": caption} in each["fields"]]
        for each in found:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/uploads/{each['id']}", method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()
        return [each["files"][0]["sha256"] for each in found]


class Program:
    """The program that is tested, and which options it has."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.help = {name: self._help(name) for name in ("serve", "send", "queue")}

    def _help(self, command):
        return subprocess.run([self.path, command, "--help"], capture_output=True, text=True).stdout

    def has(self, command, option):
        return re.search(rf"^ *{re.escape(option)}\b", self.help[command], re.MULTILINE) is not None


class Sending:
    """The outcome of `postcard send --json`."""

    def __init__(self, ended, seconds):
        self.exit_status, self.seconds = ended.returncode, seconds
        self.errors = ended.stderr.strip()
        try:
            self.report = json.loads(ended.stdout)
        except ValueError:
            self.report = {}

    @property
    def status(self):
        return self.report.get("status")

    @property
    def problem(self):
        """The code of the receiver's problem, if the response is one."""
        body = self.report.get("body")
        return body.get("code") if isinstance(body, dict) else None

    def __str__(self):
        return f"exit status {self.exit_status}, {self.status}: {self.errors[-300:]!r}"


class Trust:
    """A certificate for localhost, and how to run a program that trusts it besides the system's."""

    SYSTEM = "/etc/ssl/certs/ca-certificates.crt"

    def __init__(self, folder):
        self.key, self.certificate, self.all = (
            os.path.join(folder, name) for name in ("key.pem", "certificate.pem", "all.pem"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-keyout", self.key, "-out", self.certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        with open(self.all, "wb") as all_certificates:
            for path in (self.certificate, self.SYSTEM):
                if os.path.exists(path):
                    all_certificates.write(open(path, "rb").read())

    def command(self):
        """Runs what follows with the system's certificates replaced, for that program alone."""
        script = 'mount --bind "$0" "$1" && shift && exec "$@"'
        options = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", *options, "--mount", "sh", "-c", script, self.all, self.SYSTEM]

    def environment(self):
        """What URLSession on Linux reads."""
        return {"URLSessionCertificateAuthorityInfoFile": self.all}


# What `run_program` runs.
senders = set()


def run_program(command, seconds, environment=None):
    """Runs a program that must end, and gives it with the seconds that it took."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **(environment or {})})
    senders.add(process)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        errors = process.communicate()[1]
        raise Failed(f"{os.path.basename(command[0])} did not end within {seconds:.0f} s: {errors[-300:]!r}") from None
    finally:
        senders.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors), time.monotonic() - start


def later(seconds, action):
    """Does something in a while, and gives the thread. What it throws is raised by `join`."""
    class Later(threading.Thread):
        failure = None

        def run(self):
            time.sleep(seconds)
            try:
                action()
            except Exception as error:  # noqa: it is raised in the thread that waits
                self.failure = error

        def join(self, timeout=None):
            super().join(timeout)
            if self.failure:
                raise self.failure

    thread = Later(daemon=True)
    thread.start()
    return thread
