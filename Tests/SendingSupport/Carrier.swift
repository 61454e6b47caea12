import PostcardAsyncHTTP
package import PostcardClient
package import PostcardForm
import Testing

/// The transports that every test of sending runs through.
package enum Carrier: CaseIterable, Sendable, CustomTestStringConvertible {
    case urlSession
    case asyncHTTP
    /// AsyncHTTPClient, whose event loops read the files.
    case asyncHTTPOnEventLoops

    package static let allCases = [urlSession, asyncHTTP]
    /// For tests of how bodies are read.
    package static let allReaders = allCases + [asyncHTTPOnEventLoops]

    package var testDescription: String { "\(self)" }

    package func transport() -> any UploadTransport {
        switch self {
        case .urlSession: URLSessionTransport()
        case .asyncHTTP: AsyncHTTPTransport()
        case .asyncHTTPOnEventLoops:
            {
                var transport = AsyncHTTPTransport()
                transport.readsFilesOnEventLoops = true
                return transport
            }()
        }
    }

    /// Whether it names the length of a form that has this one.
    package func names(length: Int64) -> Bool {
        #if os(Linux)
        self != .urlSession || length <= 1 << 20
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
