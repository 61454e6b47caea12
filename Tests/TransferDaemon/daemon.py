#!/usr/bin/env python3
"""A model of the system's transfer daemon, which sends the uploads of a background session while the app is closed:
daemon.py SOCKET [--app '["program", "argument"]'] [--options '{"seed": 1, "duplicate": 0.5}']

The app and the test connect to its Unix socket. It ends with the process that started it. Each line is a JSON object. A
command has a "number", which its reply repeats. A reply may have an "error". README.md describes the model, and
session.py its options.
"""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import deque

sys.dont_write_bytecode = True  # The directory belongs to the package.
from session import Session, list_transfers  # noqa: E402


# The commands of a process that has a session.
OF_CONNECTED = ("transfers", "begin", "continue", "cancel", "pause", "acknowledge", "answer", "release")


class Peer:
    """A connection of the app or of the test."""

    def __init__(self, connection, session):
        self.connection, self.session = connection, session
        self.writing = threading.Lock()
        # The events for a connected app. Unless the model is eager, they wait until the app asks for its transfers.
        self.outbox = deque()
        self.is_background = self.is_held = self.is_invalid = False
        # The identifier of its session, and the process that has it.
        self.name = self.process = None
        self.is_gone = False

    def drop(self):
        self.is_gone = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The connection is closed already.

    def write(self, message):
        try:
            with self.writing:
                self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.drop()

    def read(self):
        """Executes commands until the other end closes the connection."""
        try:
            with self.connection, self.connection.makefile("rb") as lines:
                for line in lines:
                    command = json.loads(line)
                    try:
                        reply = self.execute(command)
                    except (OSError, KeyError, ValueError) as error:
                        reply = {"error": f"{type(error).__name__}: {error}"}
                    if "number" in command:
                        self.write({"response": command["number"], **(reply or {})})
        except (OSError, ValueError):
            pass  # The connection is closed, perhaps in the middle of a line.
        finally:
            with self.session.changed:
                self.is_gone = True
                self.session.disconnect(self)
                self.session.end_activities(self)
                self.session.changed.notify_all()

    def deliver(self):
        """Writes the events for the app, one by one, until the connection is closed."""
        session = self.session
        while True:
            with session.changed:
                session.changed.wait_for(
                    lambda: self.is_gone or self.outbox and not self.is_held and not session.is_frozen(self))
                if self.is_gone:
                    return
                event = self.outbox[0]
                delay = session.random.random() * session.options["eventDelay"]
            time.sleep(delay)
            self.write(event)
            with session.changed:
                self.outbox.popleft()
                session.changed.notify_all()

    def execute(self, command):
        session, what = self.session, command["do"]
        if what == "wait":
            return self.wait(command)
        if what == "begin":
            time.sleep(session.creation_time())
        with session.changed:
            if what == "begin-activity":
                return session.begin_activity(self, command["activity"])
            if what == "end-activity":
                return session.end_activity(self, command["activity"])
            if what == "connect":
                session.connect(self, command["session"], command["process"], command["isBackground"])
                if self.is_invalid:
                    return {}
                threading.Thread(target=self.deliver, daemon=True).start()
                if not self.is_held:
                    # Eager: waiting events are delivered before the process has asked for anything, unless they are many.
                    session.changed.wait_for(lambda: self.is_gone or not self.outbox, 1.0)
                return {}
            if what == "handled":
                return session.note_handled()
            if what in OF_CONNECTED and session.peers.get(self.name) is not self:
                if self.is_invalid and what == "transfers":
                    return list_transfers([])  # It may be asked before the process is notified.
                return {"error": "The process is not connected."}
            if what == "transfers":
                self.is_held = False
                session.changed.notify_all()
                return list_transfers(session.transfers_of(self.name))
            if what == "begin" and self.is_invalid:
                if command.get("knowsEnd"):
                    # On a device this ends the app. A process cannot prevent it before it was notified.
                    session.failures.append("A transfer began in a session of which the process knows that it has ended.")
                return {"error": "The session has ended."}
            if what == "begin":
                return session.begin(command, self.name, self.is_background)
            if what == "continue":
                return session.continue_delayed(command["transfer"], command.get("fields"))
            if what == "answer":
                return session.answer_challenge(command["transfer"])
            if what == "cancel":
                return session.cancel([t for t in session.transfers_of(self.name) if t.id in command["ids"]])
            if what == "pause":
                paused = [t for t in session.transfers_of(self.name) if t.id in command["ids"]]
                return {"resumable": session.pause(paused)}
            if what == "acknowledge":
                return session.acknowledge(command["transfer"])
            if what == "release":
                return session.release(self)
            if what == "disconnect":
                return session.disconnect(self)
            return self.control(command, what)

    def control(self, command, what):
        """Executes a command that only tests send."""
        session = self.session
        if what == "open":
            session.open_app()
        elif what == "kill":
            session.kill()
            session.lose(command.get("lost", 0.0), "at-once")
        elif what == "suspend":
            session.suspend()
        elif what == "launch-and-suspend":
            session.launch_and_suspend()
        elif what == "lock":
            session.lock_device(command["file"])
        elif what == "unlock":
            session.unlock_device()
        elif what == "launch-and-kill":
            session.launch_and_kill()
        elif what == "force-quit":
            session.force_quit()
        elif what == "cancel-all":
            session.cancel(list(session.transfers.values()), command["reason"])
        elif what == "begin-delayed":
            for transfer in session.transfers.values():
                transfer.earliest = session.now()
            session.note_change()
        elif what == "invalidate":
            session.invalidate(command["reason"])
        elif what == "lose-resources":
            session.lose_resources()
        elif what == "lose":
            session.lose(command.get("lost", 1.0), command["when"])
        elif what == "portal":
            session.portal = command.get("portal")
        elif what == "reach":
            session.is_unreachable = not command["isReachable"]
        elif what == "store":
            session.stores_nothing = not command["isStored"]
        elif what == "time":
            session.time = command["now"]
            session.note_change()
        elif what == "wake":
            session.wake()
        elif what == "network":
            session.set_network(command["network"])
        elif what != "status":
            raise ValueError(f"unknown command: {what}")
        return session.status()

    def wait(self, command):
        """Waits until a counter has a value or nothing happens by itself, and then for a time that the test has chosen.
        A timeout is an error unless the test allows it."""
        session = self.session
        counter, least = command.get("counter"), command.get("atLeast", 0)
        ends_at_rest = counter is None or command.get("orResting", False)

        def is_reached():
            return (command.get("orGone") and (session.process is None or session.is_suspended)
                    or ends_at_rest and session.is_resting()
                    or counter is not None and session.counter(counter) >= least)

        with session.changed:
            if not session.changed.wait_for(is_reached, timeout=command["within"]) and not command.get("mayPass"):
                return {**session.status(), "error": f"timed out waiting for: {counter or 'rest'} {least or ''}"}
        time.sleep(command.get("then") or 0.0)
        with session.changed:
            return session.status()


def end_with_parent(session):
    """Ends this process with the one that started it, so that a test that crashes leaves no process behind."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    session.finish_all()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket")
    parser.add_argument("--app", type=json.loads, default=[])
    parser.add_argument("--options", type=json.loads, default={})
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="transfers-", dir=os.path.dirname(os.path.abspath(arguments.socket)))
    session = Session(folder, arguments.app, arguments.options)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(arguments.socket)
    listener.listen(16)
    threading.Thread(target=end_with_parent, args=(session,), daemon=True).start()
    threading.Thread(target=session.run, daemon=True).start()
    print(f"Listening on {arguments.socket}", flush=True)
    try:
        while True:
            peer = Peer(listener.accept()[0], session)
            threading.Thread(target=peer.read, daemon=True).start()
    finally:
        session.finish_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
