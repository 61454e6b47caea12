import Crypto
import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Forms one of whose bytes changes on the way.
@Suite(.timeLimit(.minutes(20))) struct FlippedByteTests {
    private struct Record: Decodable {
        struct File: Decodable {
            let sha256: String
        }
        let files: [File]
    }

    /// The number of forms for each carrier, ordinary and resumable.
    private static let count = ProcessInfo.processInfo.environment["POSTCARD_FLIPS"].flatMap(Int.init) ?? 100

    /// Changes a byte of the first request of each form that has some of it.
    private final class Flips: Sendable {
        private let state: Mutex<(generator: SeededGenerator, isFlipped: Bool)>

        init(seed: UInt64) {
            state = Mutex((SeededGenerator(seed: seed), true))
        }

        func beginForm() {
            state.withLock { $0.isFlipped = false }
        }

        func fault(of request: ProxyRequest) -> Fault {
            guard let length = request["Content-Length"].flatMap(Int.init), length > 0 else { return .none }
            return state.withLock { state in
                guard !state.isFlipped else { return .none }
                state.isFlipped = true
                return .flip(byte: Int.random(in: 0..<length, using: &state.generator))
            }
        }
    }

    private static func client(_ carrier: Carrier, isResumable: Bool) -> UploadClient {
        var client = UploadClient(transport: carrier.transport(), retry: .withoutDelays(maximumAttempts: 3))
        client.responses.sendsDigests = true
        if isResumable {
            client.resumption = ResumptionPolicy(retry: .withoutDelays(maximumAttempts: 3), minimumBytes: 0)
        }
        return client
    }

    @Test(arguments: Carrier.allCases, [false, true])
    func `bytes that change on the way are sent again, or the form is refused`(
        carrier: Carrier, isResumable: Bool
    ) async throws {
        let client = Self.client(carrier, isResumable: isResumable)
        let flips = Flips(seed: 11)
        let receiver = try await ReceivingServer()
        let stored = try await FaultProxy.run(before: receiver.url) {
            flips.fault(of: $0)
        } while: { proxy in
            var generator = SeededGenerator(seed: 12)
            var stored = 0
            for index in 0..<Self.count {
                let content = Data(
                    (0..<Int.random(in: 1...2000, using: &generator)).map { _ in
                        UInt8.random(in: 0...255, using: &generator)
                    })
                var form = MultipartForm()
                form.append("\(index)", named: "number")
                form.append(content, named: "photo", filename: "photo.bin")
                flips.beginForm()
                do {
                    let response = try await client.upload(form, to: proxy.uploads)
                    #expect(response.isVerified)
                    let digest = SHA256.hash(data: content).map { String(format: "%02x", $0) }.joined()
                    #expect(try response.decode(Record.self).files.map(\.sha256) == [digest])
                    stored += 1
                } catch let error as UploadError {
                    // What changed has made the form malformed, which shows before its end.
                    #expect(error.code == .refused && error.delivery == .refused, "\(error)")
                    #expect(!isResumable, "\(error)")
                }
            }
            return stored
        }
        #expect(stored > 0)
        #expect(try await receiver.end().records.count == stored)
    }
}
