"""The system's state of background sessions: their transfers, the waiting events, and the app's process."""

import base64
import json
import os
import random
import shutil
import threading
import time
from collections import Counter, deque

import carrying
from app import APP, App

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
    "creation": 0.0,  # How long it takes to begin a transfer, for each one that is open.
    # The first delay of transfers that a process begins after a launch in the background, and the maximum.
    "rateLimit": 0.0,
    "longestRateLimit": 1.0,
    # How long a process may take to make another request. After that, the transfer begins with the one that it has.
    "requestPatience": 1.0,
    "wakeUpBudget": 60.0,  # How long a process may take for the events for which it was woken.
    "dropsOnce": False,  # Whether a transfer's connection breaks at most once, in the middle.
    "resumes": False,  # Whether the system resumes uploads by itself, with servers that support it.
    "holds": 0,  # How many transfers, the first ones, stop in the middle until they are cancelled.
    # Whether the end of a transfer that cannot be resumed is the response about its upload resource, not an error.
    "respondsToLostResources": False,
    "linksFiles": False,  # Whether it keeps a second name of the file instead of a copy.
    # The share of responses of success that the system cannot store, because the device was locked: it reports an error
    # with the response.
    "unstored": 0.0,
    # Whether time passes only when the test says so, and a broken transfer is not retried.
    "manualTime": False,
}
LONGEST_RETRY_SECONDS = 0.5
# NSURLErrorBackgroundSessionInUseByAnotherProcess
IN_USE = -996


class Session(App):
    def __init__(self, folder, app, options):
        super().__init__(app)
        self.folder = folder
        self.options = {**DEFAULTS, **options}
        self.random = random.Random(self.options["seed"])
        # Guards everything below, and is notified of each change.
        self.changed = threading.Condition(threading.RLock())
        self.counters = Counter()
        self.failures = []
        self.transfers = {}
        # What paused transfers can be resumed with, by the tokens that the app gets. Each is good for one transfer.
        self.resumable = {}
        self.network = {"up": True, "cellular": False, "expensive": False, "constrained": False}
        # The connection that has each session, by the session's identifier. Only one process at a time has a session.
        self.peers = {}
        # What a captive portal answers in place of all servers: tls, 511 or html. None without one.
        self.portal = None
        # Whether no connection can be made, and whether no response can be stored.
        self.is_unreachable = self.stores_nothing = False
        # The time if it is manual.
        self.time = 0.0
        self.is_ended = False
        # Whether a transfer may have to start, and when the next one is due. Most changes are about neither, and looking
        # at a thousand transfers for each of them takes longer than what the test is about.
        self.may_start, self.next_start = True, None

    def count(self, name):
        self.counters[name] += 1
        self.note_change()

    def note_change(self):
        """Notes that a transfer may have to start."""
        self.may_start = True
        self.changed.notify_all()

    def counter(self, name):
        if name == "progress":
            return sum(self.counters[part] for part in ("handedOver", "started", "ended", "acknowledged"))
        return self.counters[name]

    def now(self):
        return self.time if self.options["manualTime"] else time.monotonic()

    # Transfers

    def begin(self, command, name, is_background):
        """Keeps the file: from now on the app may remove it."""
        number = self.counters["handedOver"]
        held = os.path.join(self.folder, f"transfer-{number}")
        (os.link if self.options["linksFiles"] else shutil.copyfile)(command["file"], held)
        earliest = self.now() + max(0.0, command.get("delay") or 0.0)
        if is_background:
            earliest = max(earliest, self.rate_until)
        transfer = carrying.Transfer(number, name, command, held, earliest, is_background)
        self.transfers[number] = transfer
        if command.get("resumeData"):
            self.begin_again(transfer, command["resumeData"])
        self.counters["mostOpen"] = max(self.counters["mostOpen"], self.count_open())
        self.count("handedOver")

    def begin_again(self, transfer, data):
        """Begins a transfer with what an earlier one left. The request is the earlier one's."""
        transfer.is_resuming = True
        self.count("begunAgain")
        left = self.resumable.pop(base64.b64decode(data).decode(), None)
        if left is None or state_of(left.file) != left.state:
            return self.end(transfer, {"end": "failed", "code": "connection-lost", "message": "not resumable"})
        transfer.fields, transfer.resource = left.fields, left.resource

    def creation_time(self):
        """How long it takes to begin a transfer: the longer, the more are open."""
        with self.changed:
            return self.options["creation"] * self.count_open()

    def count_open(self):
        return sum(t.state in ("waiting", "active", "challenged") for t in self.transfers.values())

    def is_allowed(self, transfer):
        network = self.network
        if transfer.is_discretionary and (network["cellular"] or network["expensive"]):
            return False
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
            if transfer.must_ask and self.peer_of(transfer) and not self.is_frozen(self.peer_of(transfer)):
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
        transfer.must_ask, transfer.is_asking = False, True
        transfer.earliest = now + self.options["requestPatience"]
        self.peer_of(transfer).outbox.append({"event": "will-begin", "id": transfer.id, "number": transfer.number})
        self.count("asked")

    def continue_delayed(self, number, fields):
        transfer = self.transfers.get(number)
        if transfer and transfer.state == "waiting":
            names = {name.lower() for name, _ in fields or []}
            transfer.fields = [field for field in transfer.fields if field[0].lower() not in names] + (fields or [])
            transfer.earliest, transfer.is_asking = self.now(), False
            self.note_change()

    def start(self, transfer, now):
        transfer.state = "active"
        transfer.first_try = transfer.first_try or now
        transfer.connection = carrying.Connection()
        drop_at = None
        if self.options["dropsOnce"]:
            drop_at = transfer.length // 2 if self.options["drop"] and not transfer.was_connected else None
        elif self.random.random() < self.options["drop"]:
            # Half of these connections break after the server has received the whole form.
            drop_at = transfer.length if self.random.random() < 0.5 else self.random.randrange(transfer.length + 1)
        threading.Thread(target=self.carry, args=(transfer, transfer.connection, drop_at), daemon=True).start()
        self.count("started")

    def carry(self, transfer, connection, drop_at):
        response, broken, portal = None, None, self.portal
        try:
            if self.is_unreachable:
                raise carrying.Broken("no connection can be made", False)
            response = carrying.answer_of_portal(portal, transfer) if portal else carrying.carry(
                transfer, connection, self.options["requestTimeout"],
                lambda sent, count: self.report_sent(transfer, sent, count), drop_at, self.options["resumes"],
                self.hold if transfer.number < self.options["holds"] else None)
        except carrying.Broken as error:
            broken = error
        with self.changed:
            if transfer.state != "active" or transfer.connection is not connection:
                return  # It was cancelled.
            transfer.connection = None
            if portal:
                self.count("intercepted")
            if portal == "tls":
                self.end(transfer, {"end": "failed", "code": "tls", "message": "the certificate is the portal's"})
            elif transfer.is_resuming and response is None and broken.cannot_resume:
                self.end_lost_resource(transfer, broken)
            elif response and response.is_challenge():
                self.challenge(transfer, response)
            elif response:
                self.finish(transfer, response)
            else:
                self.retry(transfer, broken, self.now())

    def hold(self, transfer, connection):
        """Stops in the middle until the transfer is cancelled."""
        with self.changed:
            self.count("held")
            self.changed.wait_for(lambda: connection.is_broken)

    def end_lost_resource(self, transfer, broken):
        """The server no longer has what was sent before."""
        if self.options["respondsToLostResources"]:
            return self.finish(transfer, broken.response)
        self.end(transfer, {"end": "failed", "code": "connection-lost", "message": "not resumable"})

    def retry(self, transfer, broken, now):
        """Retries a broken transfer until the resource timeout. This is not reported to the app."""
        transfer.state = "waiting"
        transfer.was_connected |= broken.connected
        if not self.is_allowed(transfer):
            # Time without a network does not count.
            transfer.first_try, transfer.earliest = None, now
            return self.count("retried")
        if self.options["manualTime"] or (
                now + transfer.retry_delay > transfer.first_try + self.options["resourceTimeout"]):
            code = "connection-lost" if transfer.was_connected else "connection-failed"
            return self.end(transfer, {"end": "failed", "code": code, "message": str(broken)})
        transfer.earliest = now + transfer.retry_delay
        transfer.retry_delay = min(2 * transfer.retry_delay, LONGEST_RETRY_SECONDS)
        self.count("retried")

    def challenge(self, transfer, response):
        """Asks the app for credentials, for which it is launched if it does not run."""
        transfer.state, transfer.response = "challenged", response
        if peer := self.peer_of(transfer):
            peer.outbox.append({"event": "challenge", "id": transfer.id, "number": transfer.number})
        self.count("challenged")

    def answer_challenge(self, number):
        """The app has no credentials: the response to the request without them is the one it gets."""
        transfer = self.transfers.get(number)
        if transfer and transfer.state == "challenged":
            transfer.state = "active"
            self.finish(transfer, transfer.response)

    def finish(self, transfer, response):
        if response.method == "PATCH":
            self.count("resumed")
        elif response.url != transfer.url:
            self.count("redirected")
        for start in range(0, 0 if self.stores_nothing else len(response.body), carrying.CHUNK_BYTES):
            data = base64.b64encode(response.body[start:start + carrying.CHUNK_BYTES]).decode()
            transfer.events.append({"event": "received", "id": transfer.id, "data": data})
        is_unstored = self.stores_nothing or (
            response.status // 100 == 2 and self.random.random() < self.options["unstored"])
        if is_unstored:
            self.count("unstored")
        self.end(transfer, {
            "end": "response", "status": response.status, "fields": response.fields, "url": response.url,
            "method": response.method, "isUnstored": is_unstored})

    def end(self, transfer, end):
        if transfer.is_lost:
            return self.forget(transfer, "lost")
        transfer.state = "ended"
        transfer.events.append({"event": "ended", "id": transfer.id, "number": transfer.number, **end})
        if peer := self.peer_of(transfer):
            peer.outbox.extend(self.with_duplicates(transfer.events))
        else:
            self.count("endedUnseen")
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
            if transfer.state in ("waiting", "active", "challenged"):
                connection, transfer.connection = transfer.connection, None
                if connection:
                    connection.break_now()
                self.count("cancelled")
                data = self.leave(transfer) if reason else None
                self.end(transfer, {"end": "cancelled", "reason": reason, "resumeData": data})

    def leave(self, transfer):
        """Returns what another transfer can resume with, or None if the server has announced no upload resource."""
        if not self.options["resumes"] or not transfer.resource:
            return None
        token = f"{transfer.number} {len(self.resumable)}"
        self.resumable[token] = carrying.Left(transfer, state_of(transfer.file))
        return base64.b64encode(token.encode()).decode()

    def pause(self, transfers):
        """Cancels transfers, and returns by their identifiers what others can resume with."""
        resumable = {t.id: self.leave(t) for t in transfers if t.state in ("waiting", "active")}
        self.counters["paused"] += len(resumable)
        self.cancel(transfers)
        return {name: data for name, data in resumable.items() if data}

    def invalidate(self, reason):
        """Ends all sessions with what they carry, of which nothing is reported. The processes must connect again."""
        self.lose(1.0, "at-once")
        for peer in self.peers.values():
            peer.is_invalid = True
            peer.outbox.append({"event": "invalidated", "reason": reason})
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
        self.note_change()

    # Events

    def with_duplicates(self, events):
        """Repeats some events. Data is not repeated, because it would be appended twice."""
        events = list(events)
        for event in list(events):
            if event["event"] in ("sent", "ended") and self.random.random() < self.options["duplicate"]:
                events.append(event)
        return events

    def report_sent(self, transfer, sent, count):
        """Reports progress to a connected process. The system does not store it."""
        with self.changed:
            self.counters["bytesSent"] += count
            peer = self.peer_of(transfer)
            if peer and transfer.state == "active":
                event = {"event": "sent", "id": transfer.id, "bytes": sent}
                peer.outbox.extend(self.with_duplicates([event]))
                self.changed.notify_all()

    def peer_of(self, transfer):
        """The connection that has the transfer's session, or None."""
        return self.peers.get(transfer.session)

    def transfers_of(self, name):
        return [t for t in self.transfers.values() if t.session == name]

    def connect(self, peer, name, process, is_background):
        """Connects a process to a session: delivers waiting events, and after a launch in the background, that these
        were all. If another process has the session, this one gets nothing of it."""
        peer.name, peer.process = name, process
        if earlier := self.peers.get(name):
            if earlier.process != process:
                peer.is_invalid = True
                peer.write({"event": "invalidated", "systemCode": IN_USE, "reason": "in use by another process"})
                return self.count("refused")
            earlier.drop()
        if not is_background and process == APP:
            self.note_user()
        self.peers[name] = peer
        peer.is_background = is_background
        transfers = self.transfers_of(name)
        waiting = [event for t in transfers if t.state == "ended" for event in t.events]
        peer.outbox = deque(self.with_duplicates(waiting))
        peer.outbox.extend({"event": "challenge", "id": t.id, "number": t.number}
                           for t in transfers if t.state == "challenged")
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
        if self.peers.get(peer.name) is peer:
            del self.peers[peer.name]
            self.count("disconnects")

    def release(self, peer):
        """Gives up a session of which nothing is open. Ends that the process has not asked about go to it."""
        for transfer in self.transfers_of(peer.name):
            if transfer.state == "ended":
                self.forget(transfer, "acknowledged")
            else:
                self.failures.append("A process gave up a session that has open transfers.")
        self.disconnect(peer)
        self.count("released")

    # The end

    def lose_resources(self):
        for left in self.resumable.values():
            left.resource += "-lost"
        self.changed.notify_all()

    def run(self):
        """Starts transfers and launches the app when they are due, until the end."""
        with self.changed:
            while not self.is_ended:
                now = self.now()
                if self.may_start or self.next_start is not None and now >= self.next_start:
                    self.may_start = False
                    self.next_start = self.start_transfers(now)
                times = [t for t in (self.next_start, self.launch_if_due(now), self.end_wake_up(now))
                         if t is not None]
                if self.may_start:
                    continue
                is_timed = times and not self.options["manualTime"]
                self.changed.wait(max(0.0, min(times) - time.monotonic()) if is_timed else None)

    def finish_all(self):
        with self.changed:
            self.is_ended = True
            if self.process:
                self.process.kill()
            self.changed.notify_all()

    def status(self):
        return {
            "counters": {**self.counters, "progress": self.counter("progress")},
            "isResting": self.is_resting(),
            "isSettled": self.is_settled(),
            "active": sum(t.state == "active" for t in self.transfers.values()),
            "isRunning": self.process is not None and not self.is_suspended,
            "isConnected": bool(self.peers),
            "waking": self.sessions_with_events(),
            **list_transfers(self.transfers.values()), "failures": self.failures}


def list_transfers(transfers):
    """What a process gets that asks for the transfers of a session, or a test for all."""
    return {"transfers": [t.id for t in transfers], "ended": [t.id for t in transfers if t.state == "ended"]}


def state_of(path):
    """What says whether a file is the same and unmodified, or None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
