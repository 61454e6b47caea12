# `make demo` and `make test` install what they need, on a machine that has only a Swift toolchain.

SOURCES := $(wildcard $(foreach folder,. Benchmarks Benchmarks/Pictures Benchmarks/Receiving Benchmarks/Sending Benchmarks/Waiting Fuzz,$(addprefix $(folder)/,Package.swift Sources Samples Snippets Tests)))

# The tests that send run in a separate process, because a process may only open about a thousand descriptors.
SENDING := PostcardClientTests|PostcardAsyncHTTPTests|PostcardEndToEndTests|PostcardQueueTests
# These keep both processors busy for a long time, and would slow down the others.
BUSY := MutatedQueueTests|PowerCutTests|TransferDaemonKillTests|PhoneHistoryTests
# Their clocks take it for a mistake of a test if nothing goes on for ten seconds.
CLOCKS := PostcardTestingTests|PostcardQueueTestingTests

PREFIX ?= /usr/local
# How many seeds `make simulate` runs.
SEEDS ?= 10000
# How long `make check-fuzz` runs each fuzzer.
SECONDS_OF_FUZZING ?= 60
# The commit with which `make check-speed` compares this one.
BASE ?= HEAD~1
# What `make check-sdk` compiles for: static or android.
SDK ?= static
# A Swift on Debian, in which `make in-container` runs TARGET.
IMAGE ?= swift:6.3.1-bookworm

STAGE := @Scripts/stage

.PHONY: demo test check check-api page check-page check-apple check-consumers check-frameworks check-fuzz check-kills check-sdk check-simulators
.PHONY: check-release check-speed check-systems docs install archive release tagged-release publish in-container simulate
.PHONY: set-up set-up-tests set-up-systems build-tests lint format reference
.NOTPARALLEL:

# A program of its own: TLS, HTTP/2, the queue and the page would take twice as long to compile. What debuggers and
# editors read would take half a minute more.
demo: set-up
	@echo "Compiling Postcard and the libraries that it uses: about three minutes on two cores, the first time." >&2
	swift run --disable-index-store -debug-info-format none --traits Server postcard-demo

# What a contributor runs before each commit: the formatting and the folders, and all tests of behavior.
test: set-up-tests
	$(STAGE) 'formatting and folders' $(MAKE) --no-print-directory lint
	$(STAGE) 'releases and workflows' Tests/Release/check
	$(STAGE) 'build' $(MAKE) --no-print-directory build-tests
	$(STAGE) 'tests that send' Scripts/run-tests --filter "$(SENDING)" --skip "$(BUSY)"
	$(STAGE) 'other tests' Scripts/run-tests --skip "$(SENDING)|$(BUSY)|$(CLOCKS)"
	$(STAGE) 'tests with clocks' Scripts/run-tests --filter "$(CLOCKS)" --skip "$(BUSY)"
	$(STAGE) 'busy tests' Scripts/run-tests --filter "$(BUSY)"

# What takes longer. Each stage can be run alone.
check: check-api check-page docs check-apple check-consumers check-kills check-fuzz

# Whether everything compiles, the snippets too, the public declarations are those in API/, and the changelog's next
# version allows what changed there since the last one.
check-api: set-up-tests
	$(STAGE) 'build of everything' swift build --build-tests
	$(STAGE) 'public declarations' Scripts/check-api
	$(STAGE) 'next version' Scripts/release --api

# Makes the site of the documentation, with the Doctor's page, in .build/docs. Warnings and public declarations without a
# summary fail it.
docs: page
	$(STAGE) 'build of everything' swift build --build-tests
	$(STAGE) 'documentation' Scripts/make-docs

# Makes the Doctor's page, one file that any browser opens. It takes minutes once, and nothing if the sources are the same.
page: set-up-tests
	$(STAGE) 'module' Page/build
	$(STAGE) 'page' Page/assemble Page/.build/page.wasm .build/page/explain.html

# Compares what the page says with what the program says, in Node and in Chromium, and uses the page as people do.
check-page: page
	$(STAGE) 'build' $(MAKE) --no-print-directory build-tests
	$(STAGE) 'cases' env POSTCARD_DOCTOR_CASES=$(CURDIR)/.build/page/cases swift test --skip-build --filter CaseFilesTests
	$(STAGE) 'same findings' Page/check .build/debug/postcard .build/page/cases
	$(STAGE) 'page in Chromium' .build/receivers/bin/python Tests/Browser/doctor.py .build/page/explain.html .build/debug/postcard

# Compiles for Apple's platforms, and tests that check with planted defects.
check-apple: set-up
	$(STAGE) 'Apple platforms' Scripts/check-apple
	$(STAGE) 'planted defects' Tests/Apple/check-seeds

# Builds programs that each use a part of the package.
check-consumers: set-up
	$(STAGE) 'consumers' Scripts/check-consumers

# FlyingFox, SwiftNIO and Hummingbird receive the same requests, and a file of 1 GiB each. Not part of `check`, because it
# compiles the packages of all three once more.
check-frameworks: set-up
	$(STAGE) 'build' swift build --disable-index-store --package-path Tests/Frameworks --scratch-path .build/frameworks
	$(STAGE) 'three servers' Tests/Frameworks/check

# Kills and power cuts at a larger scale.
check-kills: set-up-tests
	$(STAGE) 'build' $(MAKE) --no-print-directory build-tests
	$(STAGE) 'kills and power cuts' env POSTCARD_KILLS=60 POSTCARD_POWER_CUTS=20 POSTCARD_DAEMON_FORMS=100 POSTCARD_DAEMON_KILLS=40 Scripts/run-tests --filter 'QueueCommandTests|PowerCutTests|TransferDaemonKillTests'

# Not part of `check`, because its limits of time need a machine that does nothing else.
# Real object stores, and real proxies in front of the receiver: with the program that `make install` built, if it is
# not older than that of the tests, which is there already but slower.
check-systems: set-up-systems
	$(STAGE) 'build' $(MAKE) --no-print-directory build-tests
	$(STAGE) 'proxies' sh -c 'program=.build/program/release/postcard; \
		[ $$program -nt .build/debug/postcard ] || program=.build/debug/postcard; \
		exec Tests/Proxies/check --quick $$program'
	$(STAGE) 'peers' env POSTCARD_PEER_MB=50 swift test --skip-build --filter PeerTests
	$(STAGE) 'object stores' Tests/ObjectStore/check

# Receivers that share a bucket, on a simulated clock, network and object store: SEEDS histories, and then planted bugs.
simulate: set-up
	$(STAGE) 'build' swift build -c release --product PostcardSimulator --scratch-path .build/simulator
	$(STAGE) '$(SEEDS) seeds' Tests/Simulator/simulate .build/simulator/release/PostcardSimulator 1-$(SEEDS)
	$(STAGE) 'planted bugs' Tests/Simulator/simulate .build/simulator/release/PostcardSimulator --plants

# Runs each fuzzer for a minute.
check-fuzz: set-up-tests
	$(STAGE) 'fuzzers' Fuzz/run all $(SECONDS_OF_FUZZING)

# Compiles for Linux without shared libraries, or for Android.
check-sdk: set-up
	$(STAGE) '$(SDK)' Scripts/check-sdk $(SDK)

# Compiles with Xcode, on a Mac.
check-simulators:
	$(STAGE) 'simulators' Scripts/check-simulators

# The parser's speed, compared with that of another commit. A busy machine matters little.
check-speed: set-up
	$(STAGE) 'speed' Scripts/compare-benchmarks $(BASE)

# Builds, strips and installs the program with its manual pages and its completions for bash, zsh and fish.
install:
	@Scripts/set-up program
	Scripts/install "$(DESTDIR)$(PREFIX)"

# Makes an archive of the program for machines without Swift, in .build.
archive:
	@Scripts/set-up program
	Scripts/archive

# Checks a release, and writes its notes, files and checksums into .build/release-files. The tag is the maintainer's.
release:
	Scripts/release "$(VERSION)"

# The same on the commit of the tag.
tagged-release:
	Scripts/release --tagged "$(VERSION)"

# A draft of that, which a maintainer publishes. It needs GitHub's command line.
publish:
	gh release create "$(VERSION)" --draft --verify-tag --title "$(VERSION)" --notes-file .build/release-files/notes.md \
		.build/release-files/SHA256SUMS .build/release-files/postcard*

# Makes the files of a release of this commit, and tries each: the package in a Debian of its own, the image in its root.
check-release:
	@Scripts/set-up release
	$(STAGE) 'files of a release' Tests/Release/check-files

# Another Swift, or another system: make in-container IMAGE=swift:6.2-bookworm TARGET=test
in-container:
	Scripts/in-container $(IMAGE) $(TARGET)

set-up:
	@Scripts/set-up

set-up-tests:
	@Scripts/set-up test

set-up-systems:
	@Scripts/set-up systems

# The tests and the programs that they run.
build-tests:
	swift build --product postcardPackageTests

lint:
	swift format lint --strict --parallel --recursive $(SOURCES)
	Tests/Folders/check
	Scripts/check-folders >/dev/null
	Scripts/check-imports
	Scripts/check-text
	Scripts/check-embedded
	Scripts/check-workflows

format:
	swift format --in-place --parallel --recursive $(SOURCES)

# Writes the pages of the documentation that list every problem, and every difference from browsers, from the tables in
# the code.
reference:
	POSTCARD_WRITE_REFERENCE=1 swift test --filter ReferencePageTests
