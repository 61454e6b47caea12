"""Caps that no one announced, and links that are cut again and again."""

import os

from bench import Bench
from fronts import Direct, Front
from programs import Failed, Receiver, expect
from relay import Relay

CAP_IN_NGINX = {"client_max_body_size 0;": "client_max_body_size 10m;"}
CUT_EVERY = 5_000_000
# Slower than the receiver, also that of a debug build: HAProxy drops what it has not passed on when a link is cut.
RATE, QUICK_RATE = 25_000_000, 6_000_000
MAXIMUM_REFUSALS = 2
MAXIMUM_SENT_TWICE = 0.03
# What is on its way when a refusal arrives, which is little of 1 GB, but not of the form of a quick run.
ON_ITS_WAY = 10_000_000


def with_bench(options, title, front_name, check, cap=None):
    """Runs a check in front of a receiver of its own, and prints what it says."""
    folder = os.path.join(options.folder, title.replace(" ", "-"))
    os.makedirs(folder)
    receiver = Receiver(options.program.path, folder, ["--client-share", "100"])
    front = None
    try:
        front = Direct(receiver) if front_name == "direct" else Front(
            front_name, os.path.join(folder, "front"), receiver.port, trust=options.trust, cap=cap)
        bench = Bench(options.program, receiver, front, options.samples, options.trust, folder)
        print(f"{title}: {check(bench)}", flush=True)
        return True
    except (Failed, OSError) as error:
        print(f"{title}: FAILED: {error}", flush=True)
        return False
    finally:
        if front_name != "direct" and front:
            front.kill()
        receiver.kill()


def send_through(bench, size, **link):
    """Sends a form through a relay, and gives the relay and what of it was sent twice."""
    with Relay(bench.front.port, **link) as relay:
        sending, caption = bench.send(size, "--resumable", relay=relay, seconds=600)
    twice = relay.received / size - 1
    refusals = relay.statuses.get(413, 0)
    shown = f"{sending.seconds:.1f} s, {relay.cuts} cuts, {refusals} times 413, {twice:.1%} sent twice"
    expect(sending.exit_status == 0, f"{sending} ({shown})")
    bench.expect_stored(caption, size)
    expect(refusals <= MAXIMUM_REFUSALS, shown)
    expect(relay.received - refusals * ON_ITS_WAY <= (1 + MAXIMUM_SENT_TWICE) * size, shown)
    return shown


def run_caps(options):
    size, rate = (1_000_000_000, RATE) if not options.quick else (50_000_000, QUICK_RATE)
    results = [
        with_bench(options, "cap of 10 MB", "nginx", lambda bench: send_through(bench, size), CAP_IN_NGINX)
    ] if "nginx" in options.fronts else []
    for name in ["direct", *(each for each in ("nginx", "haproxy") if each in options.fronts)]:
        results.append(with_bench(
            options, f"link cut every 5 MB, {name}", name,
            lambda bench: send_through(bench, size, cut_every=CUT_EVERY, rate=rate)))
    return all(results)
