import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Testing

/// A response as curl shows it with `-i`: interim ones, the head, the body.
struct CurlResponse: Sendable {
    struct Head: Sendable {
        let status: Int
        let fields: [String: String]

        fileprivate init(_ text: Substring) {
            let lines = text.split(separator: "\r\n")
            status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            let pairs = lines.dropFirst().map { line in
                let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                return (halves[0].lowercased(), halves.last?.trimmingCharacters(in: .whitespaces) ?? "")
            }
            fields = Dictionary(pairs, uniquingKeysWith: { first, _ in first })
        }
    }

    let interim: [Head]
    let head: Head
    let body: String

    init(_ output: Data) {
        var rest = String(decoding: output, as: UTF8.self)[...]
        var heads: [Head] = []
        while rest.hasPrefix("HTTP/"), let end = rest.firstRange(of: "\r\n\r\n") {
            heads.append(Head(rest[..<end.lowerBound]))
            rest = rest[end.upperBound...]
        }
        head = heads.last ?? Head("")
        interim = heads.dropLast()
        body = String(rest)
    }

    var status: Int { head.status }
    var problem: Problem? { try? JSONDecoder().decode(Problem.self, from: Data(body.utf8)) }
    var offset: Int64? { head.fields["upload-offset"].flatMap { Int64($0) } }

    func isComplete(in version: ResumptionVersion) -> Bool? {
        switch version == .interop3 ? head.fields["upload-incomplete"] : head.fields["upload-complete"] {
        case "?1": version != .interop3
        case "?0": version == .interop3
        default: nil
        }
    }
}

/// A request of curl's that was not answered.
struct CurlFailure: Error {
    let message: String
}

/// A sender that follows the draft by hand, with curl and files.
struct CurlSender: Sendable {
    let receiver: RunningReceiver
    let version: ResumptionVersion
    /// Holds what is sent.
    let folder: URL
    var options: [String] = []

    init(to receiver: RunningReceiver, _ version: ResumptionVersion = .newest) throws {
        self.receiver = receiver
        self.version = version
        folder = FileManager.default.temporaryDirectory.appending(path: "curl-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func removeFiles() { try? FileManager.default.removeItem(at: folder) }

    private func run(_ arguments: [String], fields: [String]) async throws -> CurlResponse {
        let number = version.interopNumber.map { ["Upload-Draft-Interop-Version: \($0)"] } ?? []
        // Without it curl waits for 100 Continue before larger bodies.
        let all = fields + number + ["Expect:"]
        let result = try await Program.run(
            "curl",
            ["-sS", "-i", "--max-time", "\(RunningReceiver.patience)"] + options + all.flatMap { ["-H", $0] }
                + arguments)
        guard result.status == 0 else { throw CurlFailure(message: result.messages) }
        return CurlResponse(result.output)
    }

    func completeness(_ isComplete: Bool) -> String {
        version == .interop3
            ? "Upload-Incomplete: \(isComplete ? "?0" : "?1")" : "Upload-Complete: \(isComplete ? "?1" : "?0")"
    }

    private func body(_ bytes: some Collection<UInt8>) throws -> [String] {
        let file = folder.appending(path: UUID().uuidString)
        try Data(bytes).write(to: file)
        return ["--data-binary", "@" + file.path]
    }

    /// - Parameter isComplete: What the request says; `nil` for one that says nothing.
    func create(
        _ bytes: some Collection<UInt8>, isComplete: Bool?, contentType: String = Form.contentType,
        fields: [String] = []
    ) async throws -> CurlResponse {
        try await run(
            body(bytes) + [receiver.url + "/uploads"],
            fields: [contentType] + [isComplete.map(completeness)].compactMap(\.self) + fields)
    }

    func head(_ location: String) async throws -> CurlResponse {
        try await run(["-I", receiver.url + location], fields: [])
    }

    func append(
        _ bytes: some Collection<UInt8>, at offset: Int64, isComplete: Bool, to location: String, fields: [String] = []
    ) async throws -> CurlResponse {
        let type = version.has(.partialUploadType) ? "Content-Type: application/partial-upload" : "Content-Type:"
        return try await run(
            ["-X", "PATCH"] + body(bytes) + [receiver.url + location],
            fields: [type, completeness(isComplete), "Upload-Offset: \(offset)"] + fields)
    }

    func send(_ bytes: [UInt8], _ method: String, _ path: String, fields: [String]) async throws -> CurlResponse {
        try await run(["-X", method] + body(bytes) + [receiver.url + path], fields: fields)
    }

    func request(_ method: String, _ path: String, fields: [String] = []) async throws -> CurlResponse {
        try await run(["-X", method, receiver.url + path], fields: fields)
    }
}

/// Runs a body with a sender to a receiver of its own, which sends the address of an upload before its bytes are read
/// if the version allows it.
func withCurlSender(
    _ version: ResumptionVersion = .newest, _ configure: @escaping (inout Receiver) -> Void = { _ in },
    _ body: (CurlSender, RunningReceiver) async throws -> Void
) async throws {
    try await withReceiver { receiver in
        receiver.uploads.resumption?.announcementDelay = .zero
        configure(&receiver)
    } _: { receiver in
        let sender = try CurlSender(to: receiver, version)
        defer { sender.removeFiles() }
        try await body(sender, receiver)
    }
}
