import Foundation

/// What many slow senders do to a receiver: to its memory, and to a normal upload at the same time.
struct SlowSenders {
    private static let rounds = 3
    private static let uploads = 30
    private static let size = 16 << 20
    private static let maximumPeakBytes = 128 << 20
    /// The grace of 20 seconds, with time to judge and to answer.
    private static let maximumSeconds = 25.0

    let folder: URL
    let yardstick: URL

    /// Runs all, prints tables, and says which goals were met.
    func compare() throws -> [Bool] {
        allowManyOpenFiles()
        return try [compareMemory(), compareSpeed()].flatMap(\.self)
    }

    private func compareMemory() throws -> [Bool] {
        show("\n500 connections that send a beginning and then one byte a second\n")
        show(heading(["receiver", "peak MiB", "", "begin KiB", "gone in s", "", "goal"]))
        var verdicts: [Bool] = []
        for begun in [0, 200 << 10] {
            for kind in Receiver.Kind.allCases {
                let receiver = try Receiver(kind, in: folder, yardstick: yardstick)
                defer { try? receiver.end() }
                let crowd = try SlowCrowd(500, beginningBytes: begun, to: receiver.url)
                // The yardstick has no time limit for senders.
                let gone = crowd.run(for: kind == .postcard ? .seconds(40) : .seconds(10))
                let peak = try receiver.peakBytes
                let isMet = kind == .yardstick || (peak <= Self.maximumPeakBytes && gone != nil)
                show(
                    row([
                        kind.rawValue, mebibytes(peak), "", "\(begun >> 10)", gone.map { decimal($0) } ?? "", "",
                        kind == .postcard ? verdict("128 MiB", isMet) : "",
                    ]))
                verdicts.append(isMet)
            }
        }
        return verdicts
    }

    private func compareSpeed() throws -> [Bool] {
        let file = folder.appending(path: "normal.bin")
        try Data((0..<Self.size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }).write(to: file)
        let receiver = try Receiver(.postcard, in: folder, yardstick: yardstick)
        defer { try? receiver.end() }
        var (alone, beside, gone) = (Figures(), Figures(), Figures())
        var areGone = true
        try upload(file, to: receiver, into: &alone)
        alone = Figures()
        for _ in 0..<Self.rounds {
            try upload(file, to: receiver, into: &alone)
            let crowd = try SlowCrowd(1000, beginningBytes: 0, to: receiver.url)
            let watch = DispatchQueue(label: "crowd")
            nonisolated(unsafe) var last: Double?
            let done = DispatchGroup()
            watch.async(group: done) { last = crowd.run(for: .seconds(40)) }
            try upload(file, to: receiver, into: &beside)
            done.wait()
            if let last { gone.add(last) } else { areGone = false }
        }
        show("\nAn upload of 16 MiB by curl -F beside 1,000 connections that send one byte a second\n")
        show(heading(["", "seconds", "from to", "of alone", "gone in s", "", "goal"]))
        let ratio = beside.median / alone.median
        let isMet = ratio <= 1.1 && areGone && gone.median <= Self.maximumSeconds
        show(row(["alone", decimal(alone.median, 4), alone.spread, "", "", "", ""]))
        show(
            row([
                "beside them", decimal(beside.median, 4), beside.spread, decimal(ratio),
                areGone ? decimal(gone.median) : "never", "", verdict("1.10, 25 s", isMet),
            ]))
        return [isMet]
    }

    private func upload(_ file: URL, to receiver: Receiver, into figures: inout Figures) throws {
        for _ in 0..<Self.uploads {
            figures.add(
                try run([
                    "curl", "--silent", "--show-error", "--fail", "--output", "/dev/null", "-H", "Expect:",
                    "-F", "file=@\(file.path)", receiver.url.absoluteString,
                ]).seconds)
        }
        try receiver.clear()
    }
}

private func allowManyOpenFiles() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
