"""The system's state of a background session: its transfers, the waiting events, and the app's process."""

import base64
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter, deque

import carrying

# A test can set each of them. Times are in seconds.
DEFAULTS = {
    "seed": 0,
    # Shares of events and attempts, from 0 to 1.
    "duplicate": 0.0,
    "drop": 0.0,
    "eventDelay": 0.0,  # The maximum random delay of an event,
    "relaunchDelay": 0.0,  # and of a launch.
    # Whether events are delivered before the process has asked for the session's transfers. null means at random.
    "eager": None,
    "resourceTimeout": 2.0,  # How long a transfer is retried on broken connections,
    "requestTimeout": 30.0,  # and how long a connection may be idle.
    "connectionsPerHost": 3,
    "stallsAbove": 1000,  # open transfers: with more, nothing is sent.
    # The first delay of transfers that a process begins after a launch in the background, and the maximum.
    "rateLimit": 0.0,
    "longestRateLimit": 1.0,
}
LONGEST_RETRY_SECONDS = 0.5
PATIENCE_FOR_REQUESTS = 1.0  # After that, a transfer begins with the request that it has.
# Launches in a row without an acknowledged event. After that, the app is considered broken and is not launched.
VAIN_LAUNCHES_ALLOWED = 20


class Session:
    def __init__(self, folder, app, options):
        self.folder, self.app_command = folder, app
        self.options = {**DEFAULTS, **options}
        self.random = random.Random(self.options["seed"])
        # Guards everything below, and is notified of each change.
        self.changed = threading.Condition(threading.RLock())
        self.counters = Counter()
        self.failures = []
        self.transfers = {}
        self.network = {"up": True, "cellular": False, "expensive": False, "constrained": False}
        self.process = None
        self.process_is_background = False
        self.peer = None
        self.was_quit = False
        self.is_open_pending = False
        self.relaunch_at = None
        self.vain_launches = 0
        self.rate_delay = 0.0
        self.rate_until = 0.0
        self.is_ended = False

    def count(self, name):
        self.counters[name] += 1
        self.changed.notify_all()

    # Transfers

    def begin(self, command, is_background):
        """Copies the file: from now on the app may remove it."""
        number = self.counters["handedOver"]
        held = os.path.join(self.folder, f"transfer-{number}")
        shutil.copyfile(command["file"], held)
        earliest = time.monotonic() + max(0.0, command.get("delay") or 0.0)
        if is_background:
            earliest = max(earliest, self.rate_until)
        self.transfers[number] = carrying.Transfer(number, command, held, earliest)
        self.counters["mostOpen"] = max(self.counters["mostOpen"], self.count_open())
        self.count("handedOver")

    def count_open(self):
        return sum(t.state in ("waiting", "active") for t in self.transfers.values())

    def is_allowed(self, transfer):
        network = self.network
        return network["up"] and all(transfer.networks[kind] or not network[kind] for kind in (
            "cellular", "expensive", "constrained"))

    def start_transfers(self, now):
        """Starts the transfers that are due, and returns when the next one is."""
        if self.count_open() > self.options["stallsAbove"]:
            return None
        active = Counter(carrying.origin(t.url) for t in self.transfers.values() if t.state == "active")
        next_time = None
        for transfer in list(self.transfers.values()):
            if transfer.state != "waiting" or not self.is_allowed(transfer):
                continue
            if transfer.earliest > now:
                next_time = min(transfer.earliest, next_time or transfer.earliest)
                continue
            if transfer.must_ask and self.peer:
                self.ask(transfer, now)
                next_time = min(transfer.earliest, next_time or transfer.earliest)
                continue
            host = carrying.origin(transfer.url)
            if active[host] < self.options["connectionsPerHost"]:
                active[host] += 1
                self.start(transfer, now)
        return next_time

    def ask(self, transfer, now):
        """Asks the process for another request, and waits a little for it."""
        transfer.must_ask = False
        transfer.earliest = now + PATIENCE_FOR_REQUESTS
        self.peer.outbox.append({"event": "will-begin", "id": transfer.id, "number": transfer.number})
        self.count("asked")

    def continue_delayed(self, number, fields):
        transfer = self.transfers.get(number)
        if transfer and transfer.state == "waiting":
            names = {name.lower() for name, _ in fields or []}
            transfer.fields = [field for field in transfer.fields if field[0].lower() not in names] + (fields or [])
            transfer.earliest = time.monotonic()
            self.changed.notify_all()

    def start(self, transfer, now):
        transfer.state = "active"
        transfer.first_try = transfer.first_try or now
        transfer.connection = carrying.Connection()
        drop_at = None
        if self.random.random() < self.options["drop"]:
            # Half of these connections break after the server has received the whole form.
            drop_at = transfer.length if self.random.random() < 0.5 else self.random.randrange(transfer.length + 1)
        threading.Thread(target=self.carry, args=(transfer, transfer.connection, drop_at), daemon=True).start()
        self.count("started")

    def carry(self, transfer, connection, drop_at):
        response, broken = None, None
        try:
            response = carrying.carry(
                transfer, connection, self.options["requestTimeout"], lambda sent: self.report_sent(transfer, sent),
                drop_at)
        except carrying.Broken as error:
            broken = error
        with self.changed:
            if transfer.state != "active" or transfer.connection is not connection:
                return  # It was cancelled.
            transfer.connection = None
            if response:
                self.finish(transfer, response)
            else:
                self.retry(transfer, broken, time.monotonic())

    def retry(self, transfer, broken, now):
        """Retries a broken transfer until the resource timeout. This is not reported to the app."""
        transfer.state = "waiting"
        transfer.was_connected |= broken.connected
        if not self.is_allowed(transfer):
            # Time without a network does not count.
            transfer.first_try = None
        elif now + transfer.retry_delay > transfer.first_try + self.options["resourceTimeout"]:
            code = "connection-lost" if transfer.was_connected else "connection-failed"
            return self.end(transfer, {"end": "failed", "code": code, "message": str(broken)})
        transfer.earliest = now + transfer.retry_delay
        transfer.retry_delay = min(2 * transfer.retry_delay, LONGEST_RETRY_SECONDS)
        self.count("retried")

    def finish(self, transfer, response):
        if response.url != transfer.url:
            self.count("redirected")
        for start in range(0, len(response.body), carrying.CHUNK_BYTES):
            data = base64.b64encode(response.body[start:start + carrying.CHUNK_BYTES]).decode()
            transfer.events.append({"event": "received", "id": transfer.id, "data": data})
        self.end(transfer, {
            "end": "response", "status": response.status, "fields": response.fields, "url": response.url,
            "method": response.method})

    def end(self, transfer, end):
        if transfer.is_lost:
            return self.forget(transfer, "lost")
        transfer.state = "ended"
        transfer.events.append({"event": "ended", "id": transfer.id, "number": transfer.number, **end})
        if self.peer:
            self.peer.outbox.extend(self.with_duplicates(transfer.events))
        self.count("ended")

    def forget(self, transfer, counter):
        transfer.state = "gone"
        self.transfers.pop(transfer.number, None)
        try:
            os.unlink(transfer.held_file)
        except FileNotFoundError:
            pass
        self.count(counter)

    def cancel(self, transfers, reason=None):
        for transfer in transfers:
            if transfer.state in ("waiting", "active"):
                connection, transfer.connection = transfer.connection, None
                if connection:
                    connection.break_now()
                self.count("cancelled")
                self.end(transfer, {"end": "cancelled", "reason": reason})

    def invalidate(self, reason):
        """Ends the session with all that it carries, of which nothing is reported. The process must connect again."""
        self.lose(1.0, "at-once")
        if self.peer:
            self.peer.is_invalid = True
            self.peer.outbox.append({"event": "invalidated", "reason": reason})
        self.count("invalidated")

    def lose(self, share, when):
        """Loses transfers at once, or after the server has responded. This is not reported to the app."""
        for transfer in list(self.transfers.values()):
            if transfer.state == "gone" or self.random.random() >= share:
                continue
            if when == "answered" and transfer.state != "ended":
                transfer.is_lost = True
            else:
                connection, transfer.connection = transfer.connection, None
                self.forget(transfer, "lost")
                if connection:
                    connection.break_now()

    def set_network(self, values):
        self.network.update(values)
        for transfer in self.transfers.values():
            if transfer.connection and not self.is_allowed(transfer):
                transfer.connection.break_now()
        self.changed.notify_all()

    # Events

    def with_duplicates(self, events):
        """Repeats some events. Data is not repeated, because it would be appended twice."""
        events = list(events)
        for event in list(events):
            if event["event"] in ("sent", "ended") and self.random.random() < self.options["duplicate"]:
                events.append(event)
        return events

    def report_sent(self, transfer, sent):
        """Reports progress to a connected process. The system does not store it."""
        with self.changed:
            if self.peer and transfer.state == "active":
                event = {"event": "sent", "id": transfer.id, "bytes": sent}
                self.peer.outbox.extend(self.with_duplicates([event]))
                self.changed.notify_all()

    def connect(self, peer, is_background):
        """Connects a process: delivers waiting events, and after a launch in the background, that these were all."""
        if self.peer:
            self.peer.drop()
        if not is_background:
            self.note_user()
        self.peer = peer
        peer.is_background = is_background
        waiting = [event for t in self.transfers.values() if t.state == "ended" for event in t.events]
        peer.outbox = deque(self.with_duplicates(waiting))
        if is_background:
            peer.outbox.append({"event": "delivered-all"})
        eager = self.options["eager"]
        peer.is_held = not (self.random.random() < 0.5 if eager is None else eager)
        self.count("connects")

    def acknowledge(self, number):
        """Forgets a transfer whose end a process has received. Without this, the end is reported again."""
        transfer = self.transfers.get(number)
        if transfer and transfer.state == "ended":
            self.vain_launches = 0
            self.forget(transfer, "acknowledged")

    def disconnect(self, peer):
        if self.peer is peer:
            self.peer = None
            self.count("disconnects")

    # The app

    def note_user(self):
        self.was_quit = False
        self.vain_launches = 0
        self.rate_delay = self.rate_until = 0.0

    def launch(self, is_background):
        now = time.monotonic()
        if is_background:
            # The rate limit doubles with each launch, unless the delay has passed.
            first = self.options["rateLimit"]
            doubled = first if now >= self.rate_until else 2 * self.rate_delay
            self.rate_delay = min(doubled, self.options["longestRateLimit"])
            self.rate_until = now + self.rate_delay
            self.vain_launches += 1
            self.count("backgroundLaunches")
        else:
            self.note_user()
            self.count("opens")
        self.relaunch_at, self.is_open_pending, self.process_is_background = None, False, is_background
        command = self.app_command + ["--launch", str(self.counters["launches"])]
        log = open(os.path.join(self.folder, "app.log"), "wb")
        self.process = subprocess.Popen(
            command + (["--background"] if is_background else []), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        threading.Thread(target=self.await_exit, args=(self.process,), daemon=True).start()
        self.count("launches")

    def await_exit(self, process):
        status = process.wait()
        with self.changed:
            if status not in (0, -signal.SIGKILL):
                with open(os.path.join(self.folder, "app.log"), errors="replace") as log:
                    self.failures.append(f"The app ended with {status}: {log.read()[-4000:]}")
            self.process = None
            self.count("exits")

    def kill(self):
        """Kills the app's process, and waits until it has ended."""
        process, peer = self.process, self.peer
        if process:
            process.kill()
            self.changed.wait_for(lambda: self.process is not process)
            if process.returncode == -signal.SIGKILL:
                self.count("killed")
        if peer:
            peer.drop()
            self.disconnect(peer)

    def launch_and_kill(self):
        """Kills a process of the app. If there is none, or it ends by itself, one is launched."""
        killed = self.counters["killed"]
        while self.counters["killed"] == killed:
            if not self.process:
                self.launch(False)
            self.kill()

    def force_quit(self):
        """Force-quits the app: its transfers are cancelled, and it is not launched until the user opens it."""
        self.was_quit, self.is_open_pending = True, False
        self.kill()
        self.cancel(list(self.transfers.values()), "force-quit")
        self.count("forceQuits")

    def open_app(self):
        """Opens the app. A process in the background ends first: the model does not move it to the foreground."""
        if not self.process:
            self.launch(False)
        elif self.process_is_background:
            self.is_open_pending = True

    def needs_launch(self):
        if self.process or self.peer or not self.app_command or self.is_ended:
            return False
        if self.is_open_pending:
            return True
        return (not self.was_quit and self.vain_launches < VAIN_LAUNCHES_ALLOWED and bool(self.transfers)
                and all(t.state == "ended" for t in self.transfers.values()))

    def is_resting(self):
        """Whether nothing happens until a test does something."""
        return (not self.process and not self.needs_launch()
                and all(t.state == "ended" or not self.is_allowed(t) for t in self.transfers.values())
                and not (self.peer and self.peer.outbox))

    def launch_if_due(self, now):
        if not self.needs_launch():
            self.relaunch_at = None
            return None
        if self.relaunch_at is None:
            self.relaunch_at = now + self.random.random() * self.options["relaunchDelay"]
        if self.is_open_pending or now >= self.relaunch_at:
            self.launch(not self.is_open_pending)
            return None
        return self.relaunch_at

    def run(self):
        """Starts transfers and launches the app when they are due, until the end."""
        with self.changed:
            while not self.is_ended:
                now = time.monotonic()
                times = [t for t in (self.start_transfers(now), self.launch_if_due(now)) if t is not None]
                self.changed.wait(max(0.0, min(times) - time.monotonic()) if times else None)

    def finish_all(self):
        with self.changed:
            self.is_ended = True
            if self.process:
                self.process.kill()
            self.changed.notify_all()

    def status(self):
        return {
            "counters": {**self.counters, "progress": sum(
                self.counters[name] for name in ("handedOver", "started", "ended", "acknowledged"))},
            "isResting": self.is_resting(), "isRunning": self.process is not None,
            "isConnected": self.peer is not None,
            **self.list_transfers(), "failures": self.failures}

    def list_transfers(self):
        transfers = self.transfers.values()
        return {"transfers": [t.id for t in transfers], "ended": [t.id for t in transfers if t.state == "ended"]}
