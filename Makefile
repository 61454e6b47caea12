# `make demo` and `make test` install what they need, on a machine that has only a Swift toolchain.

SOURCES := $(wildcard $(foreach folder,. Benchmarks Benchmarks/Pictures Benchmarks/Receiving Benchmarks/Sending Benchmarks/Waiting Fuzz,$(addprefix $(folder)/,Package.swift Sources Samples Snippets Tests)))

# The tests that send run in a separate process, because a process may only open about a thousand descriptors.
# Pictures is a trait that is off by default, because on Linux it needs system libraries.
TRAITS := --enable-all-traits

SENDING := PostcardClientTests|PostcardAsyncHTTPTests|PostcardQueueTests
# These keep both processors busy for a long time, and would slow down the others.
BUSY := MutatedQueueTests|PowerCutTests|TransferDaemonKillTests

.PHONY: demo test set-up set-up-tests lint format reference
.NOTPARALLEL:

demo: set-up
	swift run postcard demo

test: set-up-tests lint
	swift build $(TRAITS) --build-tests
	Scripts/run-tests $(TRAITS) --filter "$(SENDING)" --skip "$(BUSY)"
	Scripts/run-tests $(TRAITS) --skip "$(SENDING)|$(BUSY)"
	Scripts/run-tests $(TRAITS) --filter "$(BUSY)"
	Scripts/check-api
	Scripts/check-consumer
	Scripts/check-apple
	Tests/Apple/check-seeds

set-up:
	@Scripts/set-up

set-up-tests:
	@Scripts/set-up test

lint:
	swift format lint --strict --parallel --recursive $(SOURCES)

format:
	swift format --in-place --parallel --recursive $(SOURCES)

# Writes the page of the documentation that lists every problem, from the table in the code.
reference:
	POSTCARD_WRITE_REFERENCE=1 swift test $(TRAITS) --filter ReferencePageTests
