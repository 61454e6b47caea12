import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import Testing

/// The transports that every test of sending runs through.
enum Carrier: CaseIterable, Sendable, CustomTestStringConvertible {
    case urlSession
    case asyncHTTP

    var testDescription: String { "\(self)" }

    func transport() -> any UploadTransport {
        switch self {
        case .urlSession: URLSessionTransport()
        case .asyncHTTP: AsyncHTTPTransport()
        }
    }

    /// Whether it names the length of a form that has this one.
    func names(length: Int64) -> Bool {
        #if os(Linux)
        self == .asyncHTTP || length <= 1 << 20
        #else
        true
        #endif
    }
}

extension FormLayout {
    /// The whole body.
    func bytes() async throws -> [UInt8] {
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
