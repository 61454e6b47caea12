"""Requests through each front, with pauses around the timeouts of its idle connections and of the receiver's."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from fronts import KINDS, Front
from programs import Failed, Receiver
from wire import FORM_TYPE, KeptWire, Lost, form

# Connections that are idle at the same time.
LANES = 20
# A proxy keeps a connection for 60 seconds and the receiver for 75, here both 60 times as fast.
PROXY_TIMEOUT, RECEIVER_TIMEOUT = 1, 1.25


def pauses(count, seed):
    """Pauses before requests, within a few milliseconds of a timeout."""
    chance = random.Random(seed)
    return [
        chance.choice([PROXY_TIMEOUT, RECEIVER_TIMEOUT, RECEIVER_TIMEOUT]) + chance.uniform(-0.006, 0.006)
        for _ in range(count)]


def wires_of(front):
    """Half of them keep their connection to the proxy, which ties it to one of the proxy's to the receiver."""
    kept = 0 if front.kind.is_secure else LANES // 2
    return [KeptWire(front.port) for _ in range(kept)] + [front.wire() for _ in range(LANES - kept)]


def send(wire, caption, time_to_send):
    """Gives the outcome, and when the connection became idle."""
    time.sleep(max(0, time_to_send - time.monotonic()))
    try:
        response = wire.request("POST", "/uploads", [("Content-Type", FORM_TYPE)], form(caption, b"x"))
        return str(response.status), time.monotonic()
    except (Lost, OSError) as error:
        return str(error), time.monotonic()


def run_front(options, name):
    """Whether each request was answered with 201 and stored once."""
    folder = os.path.join(options.folder, f"idle-{name}")
    os.makedirs(folder)
    rounds = 25 if options.quick else 100
    timeout = "--keep-alive-timeout" if options.program.has("serve", "--keep-alive-timeout") else "--idle-timeout"
    receiver = Receiver(options.program.path, folder, ["--client-share", "100", timeout, str(RECEIVER_TIMEOUT)])
    front = None
    outcomes = {}
    try:
        front = Front(name, os.path.join(folder, "front"), receiver.port, in_a_hurry=True, trust=options.trust)
        wires = wires_of(front)
        with ThreadPoolExecutor(LANES) as lanes:
            times = [0] * LANES
            for index, pause in enumerate(pauses(rounds, name)):
                captions = [f"{index} {lane}" for lane in range(LANES)]
                ended = list(lanes.map(send, wires, captions, [each + pause for each in times]))
                times = [each for _, each in ended]
                for outcome, _ in ended:
                    outcomes[outcome] = outcomes.get(outcome, 0) + 1
        stored = [record["fields"][0]["value"] for record in receiver.records()]
    except Failed as error:
        print(f"idle {name}: FAILED: {error}", flush=True)
        return False
    finally:
        if front:
            front.kill()
        receiver.kill()
    is_right = outcomes == {"201": rounds * LANES} and len(stored) == len(set(stored)) == rounds * LANES
    print(f"idle {name}: {outcomes}, {len(stored)} stored{'' if is_right else ': FAILED'}", flush=True)
    return is_right


def run(options):
    fronts = [name for name in options.fronts if KINDS[name].hurry is not None]
    with ThreadPoolExecutor(len(fronts) or 1) as pool:
        return all(list(pool.map(lambda name: run_front(options, name), fronts)))
