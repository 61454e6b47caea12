import PostcardTestSupport
import Synchronization

/// A server of resumable uploads that knows some versions of the draft, and breaks connections.
final class VersionedServer: Sendable {
    /// What it does.
    struct Rules: Sendable {
        /// The versions that it accepts; `nil` for a server that compares none, as the standard will have it.
        var versions: Set<String>? = ["9"]
        /// Whether OPTIONS offers resumption; otherwise it is 405.
        var answersOptions = true
        /// How many requests with content are interrupted, half of which it keeps.
        var breaks = 2
    }

    private struct State {
        var bytes: [UInt8] = []
        var breaks: Int
        var forms: [[UInt8]] = []
        var keys: Set<String> = []
    }

    private let rules: Rules
    private let state: Mutex<State>

    init(_ rules: Rules) {
        self.rules = rules
        state = Mutex(State(breaks: rules.breaks))
    }

    /// The forms that arrived whole.
    var forms: [[UInt8]] { state.withLock { $0.forms } }
    /// The keys of all requests that could store a form.
    var keys: Set<String> { state.withLock { $0.keys } }

    /// Serves one connection.
    func serve(_ connection: RawConnection) async throws {
        while let request = try await connection.readRequest() {
            guard try await respond(to: request, on: connection) else { return }
        }
    }

    /// - Returns: Whether the connection stays open.
    private func respond(to request: RawRequest, on connection: RawConnection) async throws -> Bool {
        let named = request.head["Upload-Draft-Interop-Version"]
        let isKnown = rules.versions.map { $0.contains(named ?? "") } ?? true
        let completeness = request.head["Upload-Complete"]
        switch request.method {
        case "OPTIONS":
            if rules.answersOptions {
                try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
            } else {
                try await connection.respond("405 Method Not Allowed")
            }
        case "HEAD":
            let offset = state.withLock { $0.bytes.count }
            try await connection.respond("204 No Content", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
        case "DELETE": try await connection.respond("204 No Content")
        case "POST" where completeness == "?0":
            guard isKnown else {
                try await connection.respond("400 Bad Request", ["Upload-Complete": "?0"])
                return true
            }
            state.withLock { $0.bytes = [] }
            try await connection.respond("201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
        default:
            return try await receive(request, isResumable: isKnown && completeness != nil, on: connection)
        }
        return true
    }

    private func receive(
        _ request: RawRequest, isResumable: Bool, on connection: RawConnection
    ) async throws -> Bool {
        let version = rules.versions == nil ? nil : request.head["Upload-Draft-Interop-Version"]
        if isResumable {
            // Also keeps libcurl from repeating a request by itself.
            let offset = request.head["Upload-Offset"] ?? ""
            let field = request.method == "POST" ? "Location: /uploads/a" : "Upload-Offset: \(offset)"
            let number = version.map { "Upload-Draft-Interop-Version: \($0)\r\n" } ?? ""
            try await connection.write("HTTP/1.1 104 Upload Resumption Supported\r\n\(number)\(field)\r\n\r\n")
        }
        let isBroken = state.withLock { state in
            if let key = request.head["Idempotency-Key"] { state.keys.insert(key) }
            if request.method == "POST" { state.bytes = [] }
            let isBroken = state.breaks > 0
            state.breaks -= isBroken ? 1 : 0
            if isResumable || !isBroken {
                state.bytes += isBroken ? request.body.prefix(request.body.count / 2) : request.body[...]
            }
            if !isBroken { state.forms.append(state.bytes) }
            return isBroken
        }
        guard !isBroken else { return false }
        try await connection.respond("201 Created", isResumable ? ["Upload-Complete": "?1"] : [:])
        return true
    }
}
