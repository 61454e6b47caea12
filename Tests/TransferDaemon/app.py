"""The app's process: launched, opened, killed, quit and suspended by the system and the user."""

import os
import signal
import subprocess
import threading
import time

# Launches in a row without an acknowledged event. After that, the app is considered broken and is not launched.
VAIN_LAUNCHES_ALLOWED = 20
# How long activities may take to end when the app is about to be suspended. More than a busy machine needs.
PATIENCE_FOR_ACTIVITIES = 60.0
# The name of the app's process. Others are extensions.
APP = "app"

# The bytes of the locks of an SQLite database's read marks, in its -shm file ("WAL-mode File Format" of SQLite).
READ_MARKS = {str(byte) for byte in range(124, 128)}


class App:
    """The part of a session that is about the app's process."""

    def __init__(self, command):
        self.app_command = command
        self.process = None
        self.process_is_background = False
        self.was_quit = False
        self.is_open_pending = False
        self.relaunch_at = None
        self.vain_launches = 0
        self.rate_delay = 0.0
        self.rate_until = 0.0
        # The activities that the process has, as pairs of its connection and a number.
        self.activities = set()
        self.is_suspending = self.is_suspended = False
        # The directory of a locked device, and where it is meanwhile.
        self.hidden = None
        # When a process that was woken for events must have handled them.
        self.wake_up_ends = None

    def note_user(self):
        self.was_quit = False
        self.vain_launches = 0
        self.rate_delay = self.rate_until = 0.0

    def launch(self, is_background):
        now = time.monotonic()
        names = self.sessions_with_events()
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
            command + (["--background", "--session", names[0]] if is_background else []), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        if is_background:
            self.wake_up_ends = now + self.options["wakeUpBudget"]
        threading.Thread(target=self.await_exit, args=(self.process,), daemon=True).start()
        self.count("launches")

    def await_exit(self, process):
        status = process.wait()
        with self.changed:
            if status not in (0, -signal.SIGKILL):
                with open(os.path.join(self.folder, "app.log"), errors="replace") as log:
                    self.failures.append(f"The app ended with {status}: {log.read()[-4000:]}")
            self.process = None
            self.is_suspended, self.wake_up_ends = False, None
            self.count("exits")

    def kill(self):
        """Kills the app's process, and waits until it has ended."""
        process = self.process
        if process:
            process.kill()
            self.changed.wait_for(lambda: self.process is not process)
            if process.returncode == -signal.SIGKILL:
                self.count("killed")
        for peer in self.app_peers():
            peer.drop()
            self.disconnect(peer)
        if not self.process:
            self.is_suspended = False

    def app_peers(self):
        """The connections of the app, which has one for each of its sessions."""
        return [peer for peer in self.peers.values() if peer.process == APP]

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
        if self.hidden:
            return  # No one can open it before the device is unlocked.
        if not self.process and not self.is_suspended:
            return self.launch(False)
        if not self.process_is_background:
            for peer in self.app_peers():
                peer.is_background = False
        if self.is_suspended:
            if not self.process_is_background:
                self.note_user()
                self.count("opens")
            self.resume()
        if self.process_is_background:
            self.is_open_pending = True

    def needs_launch(self):
        if self.process or self.app_peers() or not self.app_command or self.is_ended:
            return False
        return self.is_open_pending or self.has_events()

    def has_events(self):
        """Whether the system launches or wakes the app."""
        return bool(self.sessions_with_events())

    def sessions_with_events(self):
        """The sessions for which the system launches or wakes the app: all their transfers have ended, or one needs
        credentials, and no extension is connected, which would get the events."""
        if self.was_quit or self.vain_launches >= VAIN_LAUNCHES_ALLOWED:
            return []
        states = {(t.session, t.state) for t in self.transfers.values()}
        busy = {name for name, state in states if state not in ("ended", "challenged")}
        busy -= {name for name, state in states if state == "challenged"}
        busy |= {peer.name for peer in self.peers.values() if peer.process != APP}
        return sorted({name for name, _ in states} - busy)

    def needs_waking(self):
        return bool(self.process and self.is_suspended and self.has_events())

    def is_frozen(self, peer):
        """Whether a connection is one of an app that is suspended and part of the test's own process."""
        return self.is_suspended and not self.process and peer.process in (APP, None)

    def is_settled(self):
        """Whether the model does nothing more before the servers, a process or the test do something."""
        is_cut_off = self.is_unreachable or self.portal
        return (not self.may_start and not self.is_suspending
                and all(t.state != "active" or not is_cut_off and t.connection and not t.connection.is_broken
                        for t in self.transfers.values())
                and not any(t.is_asking and t.state == "waiting" and self.peer_of(t) for t in self.transfers.values())
                and not any(peer.outbox and not peer.is_held and not self.is_frozen(peer)
                            for peer in self.peers.values()))

    def is_resting(self):
        """Whether nothing happens until a test does something."""
        if self.process and not self.is_suspended or self.is_suspending:
            return False
        return (not self.needs_launch() and not self.needs_waking()
                and all(t.state == "ended" or not self.is_allowed(t) for t in self.transfers.values())
                and (self.is_suspended or not any(peer.outbox for peer in self.app_peers())))

    def launch_if_due(self, now):
        if not self.needs_launch() and not self.needs_waking():
            self.relaunch_at = None
            return None
        if self.relaunch_at is None:
            self.relaunch_at = now + self.random.random() * self.options["relaunchDelay"]
        if self.needs_waking():
            if now < self.relaunch_at:
                return self.relaunch_at
            self.relaunch_at = None
            self.wake()
            return None
        if self.is_open_pending or now >= self.relaunch_at:
            self.launch(not self.is_open_pending)
            return None
        return self.relaunch_at

    def lock_device(self, directory):
        """Restarts the device, which ends the app. Until it is unlocked for the first time, the app's files cannot be
        used: another file is in place of their directory."""
        self.hidden = (directory, directory + "-locked")
        # No one opens the app of a locked device, and another process may be launched while one is killed.
        self.is_open_pending = False
        while self.process:
            self.kill()
        os.rename(*self.hidden)
        open(directory, "w").close()

    def unlock_device(self):
        directory, hidden = self.hidden
        self.hidden = None
        os.unlink(directory)
        os.rename(hidden, directory)

    # Suspension

    def begin_activity(self, peer, number):
        """Grants an activity, unless the app is about to be suspended."""
        is_granted = not self.is_suspending and not self.is_frozen(peer)
        if is_granted:
            self.activities.add((peer, number))
        peer.write({"event": "activity", "number": number, "granted": is_granted})

    def end_activity(self, peer, number):
        self.activities.discard((peer, number))
        self.changed.notify_all()

    def end_activities(self, peer):
        """Ends the activities of a process that has ended."""
        self.activities = {activity for activity in self.activities if activity[0] is not peer}

    def suspend(self):
        """Suspends the app when its activities have ended: anywhere, as a process that has none is not asked. The
        system ends a process that has a lock then (0xdead10cc). An app that is part of the test's own process only gets
        no events."""
        process = self.process
        if not (process or self.app_peers()) or self.is_suspended or self.is_suspending:
            return
        self.is_suspending = True
        try:
            for peer, number in self.activities:
                peer.write({"event": "expire", "number": number})
            if not self.changed.wait_for(
                    lambda: self.process is not process or not self.activities, PATIENCE_FOR_ACTIVITIES):
                self.failures.append("An activity did not end although it had expired.")
            if self.process is not process:
                return
            if not process:
                self.is_suspended = True
                return self.count("suspended")
            if not send(process, signal.SIGSTOP):
                return
            while not is_stopped(process.pid):
                time.sleep(0.001)
            self.count("suspended")
            self.wake_up_ends = None
            if locks := exclusive_locks(process.pid):
                self.failures.append(f"The app was suspended with locks: {locks}")
                self.count("killedWithLock")
                self.kill()
            elif self.process is process:
                self.is_suspended = True
        finally:
            self.is_suspending = False
            self.changed.notify_all()

    def launch_and_suspend(self):
        """Suspends a process of the app. If there is none, or it ends by itself, one is launched."""
        suspended = self.counters["suspended"]
        while self.counters["suspended"] == suspended:
            self.changed.wait_for(lambda: not self.is_suspending)
            if not self.process:
                self.launch(False)
            elif self.is_suspended:
                self.resume()
            self.suspend()

    def resume(self):
        """Lets a suspended app run again."""
        self.is_suspended = False
        if self.process:
            send(self.process, signal.SIGCONT)
        self.changed.notify_all()

    def wake(self):
        """Lets a suspended app run again, because of its session's events."""
        names = self.sessions_with_events()
        self.resume()
        self.vain_launches += 1
        if self.process:
            self.wake_up_ends = time.monotonic() + self.options["wakeUpBudget"]
        for peer in self.app_peers():
            peer.is_background = True
            if peer.name in names:
                peer.outbox.append({"event": "woken"})
                peer.outbox.append({"event": "delivered-all"})
        self.count("woken")

    def note_handled(self):
        """The app has handled the events for which it was woken, and is suspended again."""
        if self.wake_up_ends is not None:
            self.wake_up_ends = None
            threading.Thread(target=self.suspend_again, daemon=True).start()

    def suspend_again(self):
        with self.changed:
            self.suspend()

    def end_wake_up(self, now):
        """Ends a process that takes too long for the events for which it was woken. Returns when that is due."""
        if self.wake_up_ends is None or now < self.wake_up_ends:
            return self.wake_up_ends
        self.wake_up_ends = None
        self.failures.append("The app did not handle its events in time.")
        self.count("overran")
        self.kill()
        return None


def send(process, number):
    """Sends a signal. Returns whether the process has not ended."""
    try:
        os.kill(process.pid, number)
        return True
    except ProcessLookupError:
        return False  # The thread that waits for it has not noted that yet.


def is_stopped(pid):
    """Whether all threads of a process are stopped, or the process has ended."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        states = [open(f"/proc/{pid}/task/{thread}/stat").read().rsplit(")", 1)[1].split()[0] for thread in threads]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(state in "TtZX" for state in states)


def exclusive_locks(pid):
    """The exclusive locks of files that a process has, as lines of /proc/locks. Shared ones are those of readers, which
    GRDB's guide on sharing a database allows. Leaves out the lock that a reader briefly holds to set its read mark."""
    with open("/proc/locks") as file:
        lines = [line.split() for line in file]
    return [" ".join(line[1:]) for line in lines if line[1] != "->" and line[3] == "WRITE" and line[4] == str(pid)
            and not {line[6], line[7]} <= READ_MARKS]
