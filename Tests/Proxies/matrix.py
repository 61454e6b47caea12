"""Every case through every front."""

import json
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from bench import Bench
from fronts import KINDS, Direct, Front, receiver_options_of_page
from programs import Failed, Receiver, expect
from table import all_cases
from wire import FORM_TYPE, Lost

# What a case may take besides 1.5 times its direct time and what the proxy needs to buffer: programs that start on a
# busy machine.
SLACK = 0.5
# Appends that are refused before one fits the cap.
SLACK_BEHIND_A_CAP = 5
RULES = {"fields": {"caption": {}, "other": {"atLeast": 1}}, "files": {"f": {}}}


def receiver_options(program, kind, folder):
    """The options of each receiver that cases ask for."""
    usual = receiver_options_of_page(kind.page) if kind.page else list(kind.receiver_options)
    rules = os.path.join(folder, "rules.json")
    with open(rules, "w", encoding="utf-8") as file:
        json.dump(RULES, file)
    return {"usual": usual, "small": [*usual, "--max-body", "10kB"], "strict": [*usual, "--rules", rules]}


class Place:
    """The receivers of one front, with the front and without."""

    def __init__(self, options, name, is_capped):
        self.options, self.name, self.is_capped = options, name, is_capped
        self.folder = os.path.join(options.folder, name + ("-capped" if is_capped else ""))
        os.makedirs(self.folder)
        self.receiver_options = receiver_options(options.program, KINDS[name], self.folder)
        self.benches = {}

    def bench(self, receiver):
        """The benches with the front and without it, in front of that receiver."""
        if receiver not in self.benches:
            folder = os.path.join(self.folder, receiver)
            process = Receiver(self.options.program.path, folder, self.receiver_options[receiver])
            try:
                front = Front(
                    self.name, os.path.join(folder, "front"), process.port, self.is_capped, trust=self.options.trust)
            except Failed:
                process.kill()
                raise
            self.benches[receiver] = [
                Bench(self.options.program, process, each, self.options.samples, self.options.trust, folder)
                for each in (front, Direct(process))]
        return self.benches[receiver]

    def end(self):
        for bench, _ in self.benches.values():
            bench.front.kill()
            bench.receiver.kill()


class Matrix:
    def __init__(self, options):
        self.options = options
        self.cases = [
            case for case in all_cases()
            if (case.is_quick or not options.quick)
            and (not options.case or any(text in case.name for text in options.case))]
        self.results = {}
        # The fastest time of each case without a proxy so far.
        self.direct_times = {}
        self.lock = threading.Lock()

    def run(self):
        places = [
            (name, is_capped) for name in self.options.fronts for is_capped in (False, True)
            if not (is_capped and self.options.quick) or KINDS[name].page]
        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(lambda place: self.run_place(*place), places))
        self.print_table(places)
        return all(result in ("ok", "known") for result in self.results.values())

    def run_place(self, name, is_capped):
        place = Place(self.options, name, is_capped)
        title = name + (" with a cap" if is_capped else "")
        try:
            place.bench("usual")
        except (Failed, OSError) as error:
            with self.lock:
                self.results[(name, is_capped), "start"] = "FAILED"
                print(f"{title}: FAILED to start: {error}", flush=True)
            place.end()
            return
        try:
            for case in self.cases:
                run = case.capped if is_capped else case.run
                if not run or (case.is_of_page and not KINDS[name].page):
                    continue
                start = time.monotonic()
                result, reason = self.result(place, case, run)
                with self.lock:
                    self.results[(name, is_capped), case.name] = result
                    if result != "ok":
                        seconds = time.monotonic() - start
                        print(f"{title}: {case.name}: {result} after {seconds:.1f} s: {reason}", flush=True)
        finally:
            place.end()

    def result(self, place, case, run):
        try:
            self.run_case(place, case, run)
            return "ok", None
        except (Failed, Lost, OSError) as error:
            reason = KINDS[place.name].known.get(case.name)
            return ("known", reason) if reason else ("FAILED", error)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return "FAILED", "an error of the check, see above"

    def run_case(self, place, case, run):
        bench, direct = place.bench(case.receiver)
        count = bench.receiver.request_count()
        seconds = run(bench)
        requests = bench.receiver.requests_since(count)
        # One request of a case that asks for the record is the check's own.
        sent = [each for each in requests if not each.startswith("GET") and not each.startswith("DELETE")]
        expect(len(sent) <= case.maximum_requests, f"{len(sent)} requests: {', '.join(sent[:20])}")
        if case.is_compared and seconds is not None:
            self.check_time(place, case, run, bench, direct, seconds)

    def check_time(self, place, case, run, bench, direct, seconds):
        with self.lock:
            direct_seconds = self.direct_times.get(case.name)
        if direct_seconds is None:
            direct_seconds = self.measure_directly(case, direct)
        slack = SLACK_BEHIND_A_CAP if place.is_capped else SLACK
        if seconds <= 1.5 * direct_seconds + slack:
            return
        # Measured again beside each other: the machine may have been busy, but not for this long.
        for _ in range(3 if seconds < 5 * (direct_seconds + slack) else 1):
            direct_seconds = self.measure_directly(case, direct)
            buffering = 0 if place.is_capped else buffering_time(bench, direct, getattr(run, "keywords", {}).get("size"))
            seconds = run(bench)
            limit = 1.5 * direct_seconds + buffering + slack
            if seconds <= limit:
                return
        raise Failed(f"{seconds:.1f} s, and {direct_seconds:.1f} s without the proxy, which buffers {buffering:.1f} s")

    def measure_directly(self, case, direct):
        seconds = case.run(direct)
        with self.lock:
            self.direct_times[case.name] = min(seconds, self.direct_times.get(case.name, seconds))
        return seconds

    def print_table(self, places):
        print("\nThe fronts, from left to right; the last half of them with a cap of 1 MB on bodies:")
        columns = sorted(places, key=lambda place: place[1])
        width = max((len(case.name) for case in self.cases), default=0)
        for index, (name, is_capped) in enumerate(columns):
            print(f"  {index + 1:2} {name}{' with a cap' if is_capped else ''}")
        print(" " * width, *(f"{index + 1:>2}" for index in range(len(columns))))
        shown = {"ok": " ✓", "known": " k", "FAILED": " ✗", None: " ·"}
        for case in self.cases:
            cells = [shown[self.results.get((place, case.name))] for place in columns]
            print(f"{case.name:{width}}", *cells)
        counts = {each: sum(result == each for result in self.results.values()) for each in ("ok", "known", "FAILED")}
        print(f"{len(self.results)} cases: {counts['ok']} right, {counts['known']} known, {counts['FAILED']} failed")


def buffering_time(bench, direct, size):
    """How much longer a plain request takes through the proxy."""
    if not size:
        return 0
    times = []
    for each in (bench, direct):
        body, caption = each.raw_form(size)
        start = time.monotonic()
        each.front.wire().request("POST", "/uploads", [("Content-Type", FORM_TYPE)], body)
        times.append(time.monotonic() - start)
        each.receiver.take(caption)
    return max(0, times[0] - times[1])


def run(options):
    return Matrix(options).run()
