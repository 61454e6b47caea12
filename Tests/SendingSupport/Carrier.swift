import PostcardAsyncHTTP
package import PostcardClient
package import PostcardForm
package import Testing

/// The transports that every test of sending runs through.
package enum Carrier: CaseIterable, Sendable, CustomTestStringConvertible {
    case urlSession
    case asyncHTTP

    package var testDescription: String { "\(self)" }

    package func transport() -> any UploadTransport {
        switch self {
        case .urlSession: URLSessionTransport()
        case .asyncHTTP: AsyncHTTPTransport()
        }
    }

    /// Whether it names the length of a form that has this one.
    package func names(length: Int64) -> Bool {
        #if os(Linux)
        self == .asyncHTTP || length <= 1 << 20
        #else
        true
        #endif
    }
}

extension FormLayout {
    /// The whole body.
    package func bytes() async throws -> [UInt8] {
        let reader = try reader()
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while try await reader.prepare() {
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
