import Foundation
import Synchronization

/// What a server answers, one after the other; `nil` closes the connection without an answer.
final class Answers: Sendable {
    typealias Answer = (status: String, fields: [String: String])

    private let rest: Mutex<[Answer?]>

    init(_ answers: [Answer?]) {
        rest = Mutex(answers)
    }

    func next() -> Answer? {
        rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    /// Runs a server that reads each request whole and then gives the next answer.
    @discardableResult
    static func run<Result: Sendable>(
        _ answers: [Answer?], while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        let rest = Answers(answers)
        return try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                guard let answer = rest.next() else { return }
                try await connection.respond(answer.status, answer.fields)
            }
        } while: {
            try await work($0)
        }
    }
}

extension RawRequest {
    var path: String { head.line.split(separator: " ").dropFirst().first.map(String.init) ?? "" }
    var method: String { head.line.split(separator: " ").first.map(String.init) ?? "" }
}
