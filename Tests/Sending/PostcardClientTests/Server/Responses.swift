import Foundation
import Synchronization

/// The responses of a server, one after the other; `nil` closes the connection without a response.
final class Responses: Sendable {
    typealias Response = (status: String, fields: [String: String])

    private let rest: Mutex<[Response?]>

    init(_ responses: [Response?]) {
        rest = Mutex(responses)
    }

    func next() -> Response? {
        rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    /// Runs a server that reads each request whole and then gives the next response.
    @discardableResult
    static func run<Result: Sendable>(
        _ responses: [Response?], while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        let rest = Responses(responses)
        return try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                guard let response = rest.next() else { return }
                try await connection.respond(response.status, response.fields)
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
