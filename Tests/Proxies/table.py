"""Every case, and what it needs."""

from dataclasses import dataclass
from functools import partial
from typing import Callable

import cases
from bench import HUNDREDS, KILOBYTES, MEGABYTES

TITLES = {KILOBYTES: "20 kB", MEGABYTES: "5 MB", HUNDREDS: "200 MB"}
# How long the body of an app takes in cases that pace it: long enough for a 104.
PACE = 2.5
RETRIED = ("--retries", "8")


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable
    # Which receiver it needs: one as usual, one that accepts 10 kB, or one that asks for another field.
    receiver: str = "usual"
    # What is run behind a cap of 1 MB; nothing if that would say nothing.
    capped: Callable = None
    # Whether its time is compared with that of the same case without a proxy.
    is_compared: bool = True
    maximum_requests: int = 8
    is_quick: bool = True
    # Whether only the page's configurations promise it.
    is_of_page: bool = False


class Table(list):
    def add(self, name, run, is_capped=False, **options):
        self.append(Case(name, run, **{"capped": run if is_capped else None, **options}))


def all_cases():
    table = Table()
    add_sending(table)
    add_apps(table)
    add_refusals(table)
    add_kills(table)
    table.add("live events", cases.listened, is_capped=True, is_compared=False)
    table.add("the client's address", cases.named, is_compared=False, is_of_page=True)
    table.add("30 clients", cases.thirty, is_capped=True, maximum_requests=80)
    return table


def add_sending(table):
    for size, title in TITLES.items():
        options = {
            "is_quick": size != HUNDREDS, "is_capped": size != HUNDREDS,
            "maximum_requests": 40 if size == MEGABYTES else 8}
        plain = {**options, "maximum_requests": 1}
        if size == MEGABYTES:
            plain |= {"capped": partial(cases.refused_by_proxy, size=size)}
        table.add(f"plain {title}", partial(cases.sent, size=size), **plain)
        table.add(f"resumable {title}", partial(cases.sent, size=size, options=("--resumable",)), **options)
        table.add(f"queue {title}", partial(cases.queued, size=size), **options)
        table.add(
            f"resumable by URLSession {title}",
            partial(cases.sent, size=size, options=("--resumable", "--transport", "urlsession")), **options)


def add_apps(table):
    for size in (KILOBYTES, MEGABYTES):
        is_small = size == KILOBYTES
        for version in (3, 6, 8, 9):
            name = f"iOS {version}, {TITLES[size]}"
            run = partial(cases.posted, size=size, version=version)
            refused = partial(cases.posted_and_refused, size=size, version=version)
            table.add(name, run, capped=run if is_small else refused)
            # Slowly, so that the receiver has time for a 104.
            table.add(
                f"{name} slowly", partial(run, seconds=PACE), is_capped=is_small, is_quick=not is_small or version == 9)
            table.add(
                f"{name} cut", partial(run, seconds=PACE, cut_at=0.6), is_capped=is_small, is_quick=not is_small,
                is_compared=False)
    table.add("iOS 8, 200 MB", partial(cases.posted, size=HUNDREDS, version=8), is_quick=False)
    for method in ("HEAD", "GET"):
        table.add(f"{method} at an upload", partial(cases.asked, method=method), is_capped=True)


def add_refusals(table):
    for size, title in TITLES.items():
        options = {"is_capped": size == KILOBYTES, "maximum_requests": 4, "is_quick": size != HUNDREDS}
        small, strict = {"receiver": "small", **options}, {"receiver": "strict", **options}
        resumable = ("--resumable",)
        table.add(f"413, plain {title}", partial(cases.refused, size=size, status=413), **small)
        table.add(f"413, resumable {title}", partial(cases.refused, size=size, status=413, options=resumable), **small)
        table.add(f"413, iOS 8 {title}", partial(cases.posted_and_refused, size=size, status=413), **small)
        if size == HUNDREDS:
            continue
        table.add(f"413, queue {title}", partial(cases.refused_in_queue, size=size, status=413), **small)
        table.add(f"422 at the end, plain {title}", partial(cases.refused, size=size, status=422), **strict)
        table.add(
            f"422 at the end, resumable {title}",
            partial(cases.refused, size=size, status=422, options=resumable), **strict)
        table.add(f"422 at the end, iOS 8 {title}", partial(cases.posted_and_refused, size=size, status=422), **strict)
        table.add(f"422 early, plain {title}", partial(cases.refused, size=size, status=422, file="other"), **strict)
        table.add(
            f"422 early, iOS 8 {title}",
            partial(cases.posted_and_refused, size=size, status=422, file="other"), **strict)


def add_kills(table):
    options = {"is_compared": False, "maximum_requests": 40}
    for victim in ("proxy", "receiver"):
        run = partial(cases.killed, size=MEGABYTES, victim=victim)
        table.add(
            f"{victim} killed, resumable", partial(run, options=("--resumable", *RETRIED)), is_capped=True, **options)
        table.add(f"{victim} killed, queue", partial(run, is_queue=True), is_capped=True, **options)
        table.add(f"{victim} killed, plain with retries", partial(run, options=RETRIED), is_quick=False, **options)
