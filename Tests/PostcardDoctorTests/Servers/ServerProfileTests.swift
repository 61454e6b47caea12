import PostcardDoctor
import PostcardForm
import Testing

@Suite("What a server would say")
struct ServerProfileTests {
    private static func explanation(_ parts: [SampleRequest.Part]) -> Explanation {
        BrokenRequestTests.explanation(of: SampleRequest(parts).bytes)
    }

    private static func file(_ size: Int) -> SampleRequest.Part {
        .file("file", "a.bin", "application/octet-stream", [UInt8](repeating: 1, count: size))
    }

    /// A form at a server's limit, one over it, and the setting that is named.
    static let limits: [(server: String, fits: [SampleRequest.Part], over: [SampleRequest.Part], setting: String)] = [
        ("php", [file(2 << 20)], [file(2 << 20 + 1)], "upload_max_filesize"),
        ("php", files(20), files(21), "max_file_uploads"),
        ("nginx", [file(1 << 20 - 200)], [file(1 << 20)], "client_max_body_size"),
        ("spring", [file(1 << 20)], [file(1 << 20 + 1)], "max-file-size"),
        ("tomcat", files(50), files(51), "maxPartCount"),
        ("multer", [field(1 << 20)], [field(1 << 20 + 1)], "limits.fieldSize"),
        ("rails", files(128), files(129), "RACK_MULTIPART_FILE_LIMIT"),
        ("django", files(100), files(101), "DATA_UPLOAD_MAX_NUMBER_FILES"),
        ("flask", [field(500_000)], [field(500_001)], "MAX_FORM_MEMORY_SIZE"),
        ("s3", [field(1), file(1)], [file(1), field(1)], "last part"),
    ]

    private static func files(_ count: Int) -> [SampleRequest.Part] {
        (0..<count).map { .file("f\($0)", "f\($0).txt", "text/plain", Array("file \($0)".utf8)) }
    }

    private static func field(_ size: Int) -> SampleRequest.Part {
        .field("note", String(repeating: "a", count: size))
    }

    @Test("A form at the limit passes, and one over it is an error that names the setting", arguments: limits.indices)
    func limit(index: Int) throws {
        let row = Self.limits[index]
        let server = try #require(ServerProfile(named: row.server))
        #expect(Self.explanation(row.fits).judged(against: [server]).findings == [])
        let judged = Self.explanation(row.over).judged(against: [server])
        let first = try #require(judged.findings.first)
        #expect(first.code == .doctor(.refusedByServer))
        #expect(first.severity == .error)
        #expect(first.fix.contains(row.setting), "\(first)")
        #expect(!judged.isValid)
    }

    @Test("Names are known in any case, and strangers are not")
    func names() {
        #expect(ServerProfile.all.allSatisfy { ServerProfile(named: $0.name.uppercased()) == $0 })
        #expect(ServerProfile(named: "clippy") == nil)
    }

    @Test("PHP keeps the last of several parts with one name")
    func lists() {
        let judged = Self.explanation([.field("tag", "a"), .field("tag", "b")]).judged(against: [.php])
        #expect(judged.findings.map(\.partIndex) == [1])
        #expect(Self.explanation([.field("tag[]", "a"), .field("tag[]", "b")]).judged(against: [.php]).isValid)
    }
}
