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
        ("php", fields(1000), fields(1001), "max_input_vars"),
        ("php", files(20) + fields(1000), files(20) + fields(1000) + files(1), "max_multipart_body_parts"),
        ("nginx", [file(1 << 20 - 200)], [file(1 << 20)], "client_max_body_size"),
        ("spring", [file(1 << 20)], [file(1 << 20 + 1)], "max-file-size"),
        ("spring", fields(50), fields(51), "server.tomcat.max-part-count"),
        ("spring", [named(512)], [named(513)], "server.tomcat.max-part-header-size"),
        ("spring", [field(2 << 20 - 6)], [field(2 << 20 - 5)], "server.tomcat.max-http-form-post-size"),
        ("tomcat", files(50), files(51), "maxPartCount"),
        ("tomcat", [named(512)], [named(513)], "maxPartHeaderSize"),
        ("tomcat", [field(1 << 20), field(1 << 20 - 12)], [field(1 << 20), field(1 << 20 - 11)], "maxPostSize"),
        ("multer", [field(1 << 20 - 1)], [field(1 << 20)], "limits.fieldSize of multer"),
        ("express", [field(1 << 20 - 1)], [field(1 << 20)], "limits.fieldSize of busboy"),
        ("rails", files(127), files(128), "RACK_MULTIPART_FILE_LIMIT"),
        ("rails", fields(4095), fields(4096), "RACK_MULTIPART_TOTAL_PART_LIMIT"),
        ("rails", [field(16 << 20 - 6)], [field(16 << 20 - 5)], "RACK_MULTIPART_BUFFERED_UPLOAD_BYTESIZE_LIMIT"),
        ("django", files(100), files(101), "DATA_UPLOAD_MAX_NUMBER_FILES"),
        ("django", fields(1000), fields(1001), "DATA_UPLOAD_MAX_NUMBER_FIELDS"),
        (
            "django", [field(2_000_000), field(621_428)], [field(2_000_000), field(621_429)],
            "DATA_UPLOAD_MAX_MEMORY_SIZE"
        ),
        ("flask", [field(500_000)], [field(500_001)], "MAX_FORM_MEMORY_SIZE"),
        ("flask", fields(1000), fields(1001), "MAX_FORM_PARTS"),
        ("fastapi", [field(1 << 20)], [field(1 << 20 + 1)], "max_part_size"),
        ("fastapi", files(1000), files(1001), "max_files"),
        ("fastapi", fields(1000), fields(1001), "max_fields"),
        ("go", fields(1000), fields(1001), "multipartmaxparts"),
        ("aspnet", fields(1024), fields(1025), "ValueCountLimit"),
        ("aspnet", [field(29_000_000)], [field(30_000_000)], "MaxRequestBodySize"),
        ("vapor", [field(16_000)], [field(16 << 10)], "defaultMaxBodySize"),
        ("cloudflare", [field(1)], [file(100_000_000)], "plan"),
        ("openai-audio", [model, sound("audio/x-m4a")], [model, sound("application/octet-stream")], "audio/flac"),
        ("openai-audio", [model, sound("audio/mpeg")], [sound("audio/mpeg")], "Send the field \"model\""),
        ("openai-audio", [model, field(26_000_000)], [model, field(26_300_000)], "m4a or ogg"),
        ("openai-images", [prompt] + pictures(16), [prompt] + pictures(17), "16 pictures"),
        ("openai-images", [prompt] + pictures(1), [prompt, sound("image/heic")], "image/webp"),
        ("s3", [key, field(20_000), file(1)], [key, field(20_500), file(1)], "another request"),
        ("s3", [key, file(1)], [key, file(1), file(2)], "its own request"),
        ("s3", [key, field(1), file(1)], [key, file(1), field(1)], "last part"),
        ("s3", [key, file(1)], [file(1)], "Send the field \"key\""),
    ]

    private static let model = SampleRequest.Part.field("model", "gpt-transcribe")
    private static let prompt = SampleRequest.Part.field("prompt", "a cat")

    private static func sound(_ type: String) -> SampleRequest.Part {
        .file("file", "a.bin", type, Array("ID3".utf8))
    }

    private static func pictures(_ count: Int) -> [SampleRequest.Part] {
        (0..<count).map { .file("image[]", "\($0).png", "image/png", [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10]) }
    }

    private static let key = SampleRequest.Part.field("key", "photos/1")

    private static func files(_ count: Int) -> [SampleRequest.Part] {
        (0..<count).map { .file("f\($0)", "f\($0).txt", "text/plain", Array("file \($0)".utf8)) }
    }

    private static func fields(_ count: Int) -> [SampleRequest.Part] {
        (0..<count).map { .field("n\($0)", "\($0)") }
    }

    /// A file whose header has this many bytes, with its blank line.
    private static func named(_ size: Int) -> SampleRequest.Part {
        let rest = "Content-Disposition: form-data; name=\"f\"; filename=\"\"\r\nContent-Type: image/gif\r\n\r\n"
        let filename = String(repeating: "a", count: size - rest.utf8.count)
        return .file("f", filename, "image/gif", Array("GIF89a".utf8) + [0x3B])
    }

    private static func field(_ size: Int) -> SampleRequest.Part {
        .field("note", String(repeating: "a", count: size))
    }

    @Test(arguments: limits.indices)
    func `a form at the limit passes, and one over it is an error that names the setting`(index: Int) throws {
        let row = Self.limits[index]
        let server = try #require(ServerProfile(named: row.server))
        let fits = Self.explanation(row.fits).judged(against: [server])
        #expect(!fits.findings.contains { $0.code == .refusedByServer }, "\(fits)")
        let judged = Self.explanation(row.over).judged(against: [server])
        let found = judged.findings.filter { $0.code == .refusedByServer }
        #expect(found.contains { $0.advice.contains(row.setting) }, "\(judged)")
        #expect(found.allSatisfy { $0.severity == .error })
        #expect(!judged.isValid)
    }

    @Test
    func `names are known in any case, and strangers are not`() {
        #expect(ServerProfile.all.allSatisfy { ServerProfile(named: $0.name.uppercased()) == $0 })
        #expect(ServerProfile(named: "clippy") == nil)
    }

    @Test(arguments: [
        ("user.name", "user_name"), ("first name", "first_name"), ("a[b", "a_b"), (" lead", "lead"),
        ("a.b[c.d]", "a_b[c.d]"),
    ])
    func `PHP gives other names to fields with dots, spaces and open brackets`(name: String, read: String) throws {
        let judged = Self.explanation([.field(name, "x")]).judged(against: [.php])
        let finding = try #require(judged.findings.first)
        #expect(finding.code == .refusedByServer)
        #expect(finding.message.hasSuffix("under the name \(read.debugDescription)."))
        #expect(Self.explanation([.field(read, "x")]).judged(against: [.php]).isValid)
        #expect(Self.explanation([.field(name, "x")]).judged(against: [.go]).isValid)
    }

    @Test
    func `PHP keeps the last of several parts with one name`() {
        let judged = Self.explanation([.field("tag", "a"), .field("tag", "b")]).judged(against: [.php])
        #expect(judged.findings.map(\.partIndex) == [1])
        #expect(Self.explanation([.field("tag[]", "a"), .field("tag[]", "b")]).judged(against: [.php]).isValid)
    }
}
