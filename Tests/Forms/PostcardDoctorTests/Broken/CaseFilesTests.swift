import Foundation
import PostcardDoctor
import PostcardForm
import Testing

/// Writes the cases of these tests as files, for `Page/check`, which explains each in WebAssembly too.
struct CaseFilesTests {
    private static let folder = ProcessInfo.processInfo.environment["POSTCARD_DOCTOR_CASES"]

    @Test(.enabled(if: folder != nil, "POSTCARD_DOCTOR_CASES names no folder."))
    func `every request of these tests is a file`() throws {
        let folder = URL(filePath: try #require(Self.folder))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let broken = BrokenRequestTests.all.map(\.request.bytes)
        let good = SampleRequest.good.map(\.request.bytes)
        let hostile = HostileShape.all.map { $0.bytes(20_000) }
        for (index, bytes) in (broken + good + hostile).enumerated() {
            try Data(bytes).write(to: folder.appending(path: "\(index).http"))
        }
    }
}
