import Bodies
import MemoryMeter
import PostcardForm

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A body that would be long, made while it is fed, and the limit that has to end it.
struct HostileBody {
    let title: String
    private let head: [UInt8]
    /// What comes behind the head, over and over.
    private let chunk: [UInt8]
    private let chunkCount: Int
    /// How the body ends, where it is let through.
    private let tail: [UInt8]
    private let limits: FormLimits
    private let expected: FormProblem.Code?

    /// The most memory that the whole process may take.
    private static let mostBytes = 32 << 20

    private init(
        _ title: String, _ head: String, then unit: String, times: Int, tail: String = "",
        limits: FormLimits = FormLimits(), isEndedBy expected: FormProblem.Code?
    ) {
        self.title = title
        self.head = Array(head.utf8)
        let unit = Array(unit.utf8)
        let unitsPerChunk = max(1, (64 << 10) / unit.count)
        chunk = Array((0..<unitsPerChunk).map { _ in unit }.joined())
        chunkCount = (times + unitsPerChunk - 1) / unitsPerChunk
        self.tail = Array(tail.utf8)
        self.limits = limits
        self.expected = expected
    }

    private static let all: [HostileBody] = [
        HostileBody(
            "one million parts", "", then: field, times: 1_000_000, isEndedBy: .tooManyParts),
        HostileBody(
            "one million parts, let through", "", then: field, times: 1_000_000,
            tail: "--\(Body.usualBoundary)--", limits: roomy, isEndedBy: nil),
        HostileBody(
            "a header line of 1 GiB", "--\(Body.usualBoundary)\r\nContent-Disposition: form-data; name=\"", then: "a",
            times: 1 << 30, isEndedBy: .headerTooLarge),
        HostileBody(
            "10 million CRLFs of preamble", "", then: "\r\n", times: 10_000_000, isEndedBy: .preambleTooLarge),
        HostileBody(
            "a boundary that never comes", "", then: "nothing\r\n--", times: 1 << 27, isEndedBy: .preambleTooLarge),
        HostileBody(
            "a field whose end never comes", fieldHead, then: "nothing\r\n--", times: 1 << 27,
            isEndedBy: .fieldTooLarge),
        HostileBody(
            "a file whose end never comes", "--\(Body.usualBoundary)\r\n\(Body.fileHeader)\r\n\r\n",
            then: "nothing\r\n--", times: 1 << 30, isEndedBy: .bodyTooLarge),
        HostileBody(
            "a file whose end never comes, let through", "--\(Body.usualBoundary)\r\n\(Body.fileHeader)\r\n\r\n",
            then: "nothing\r\n--", times: 1 << 30, tail: "\r\n--\(Body.usualBoundary)--", limits: roomy,
            isEndedBy: nil),
    ]

    private static let fieldHead = """
        --\(Body.usualBoundary)\r\nContent-Disposition: form-data; name="a"\r\n\r\n
        """

    private static let field = fieldHead + "1\r\n"

    /// Limits that are none, to show that the parser keeps nothing of what it has handed on.
    private static let roomy: FormLimits = {
        var limits = FormLimits()
        limits.maximumParts = .max
        limits.maximumBodyBytes = .max
        limits.maximumFileBytes = .max
        return limits
    }()

    static func named(_ title: String) throws -> HostileBody {
        guard let body = all.first(where: { $0.title == title }) else { throw Unknown(title: title) }
        return body
    }

    struct Unknown: Error {
        let title: String
    }
}

extension HostileBody {
    /// Feeds the body, prints a row, and ends the process with a failure where it was not as expected.
    func measure() throws {
        let before = memory_meter_live_bytes()
        memory_meter_reset_peak()
        let problem = feed()
        let held = memory_meter_counts() ? "\((memory_meter_peak_bytes() - before) >> 10) KiB" : "?"
        let resident = memory_meter_peak_resident_bytes()
        let outcome = problem.map { "\($0.code) at \($0.offset)" } ?? "complete"
        let isFine = problem?.code == expected && resident <= Self.mostBytes
        print(
            "| \(title.padded(to: 41)) | \(outcome.padded(to: 32)) | \(held.padded(to: 8)) |"
                + " \("\(resident >> 20) MiB".padded(to: 8)) | \(isFine ? "as it should" : "WRONG") |")
        if !isFine { exit(1) }
    }

    private func feed() -> FormProblem? {
        do throws(FormProblem) {
            var parser = try FormParser(boundary: Body.usualBoundary, limits: limits)
            _ = try parser.contentLength(of: head)
            for _ in 0..<chunkCount { _ = try parser.contentLength(of: chunk) }
            _ = try parser.contentLength(of: tail)
            try parser.finish()
            return nil
        } catch {
            return error
        }
    }

    /// Runs this program once per body.
    ///
    /// - Returns: Whether all went as they should.
    static func measureEachInAProcess() throws -> Bool {
        print(
            """

            Hostile bodies at the default limits: what ended them, the most bytes the parser held, the most memory
            of the whole process, which may take \(mostBytes >> 20) MiB:

            """)
        flush()
        var isFine = true
        for body in all where try !runSelf(with: body.title) { isFine = false }
        return isFine
    }

    private static func runSelf(with argument: String) throws -> Bool {
        let program = CommandLine.arguments[0]
        var arguments = [strdup(program), strdup(argument), nil]
        defer { for pointer in arguments { free(pointer) } }
        var process = pid_t()
        guard posix_spawn(&process, program, nil, nil, &arguments, environ) == 0 else { return false }
        var status: CInt = 0
        return waitpid(process, &status, 0) == process && status == 0
    }

    /// The child writes to the same place.
    private static func flush() {
        fflush(nil)
    }
}
