import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("The files of a form")
struct FileTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func form(_ file: URL) -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: file, named: "picture")
        return form
    }

    @Test
    func `what is no regular file is refused before a byte is sent, by its name`() throws {
        let pipe = folder.url.appending(path: "pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        let cases: [(URL, FormError.Code)] = [
            (folder.url.appending(path: "missing.jpg"), .fileMissing),
            (try folder.file("file", [1]).appending(path: "in a file"), .fileMissing),
            (folder.url, .fileNotRegular),
            (pipe, .fileNotRegular),
            (URL(filePath: "/dev/null"), .fileNotRegular),
            (URL(filePath: "/proc/version"), .fileUnreadable),
            (URL(filePath: "/proc/self/mem"), .fileUnreadable),
        ]
        for (file, code) in cases {
            let error = #expect(throws: FormError.self) { try form(file).layout() }
            #expect(error?.code == code)
            #expect(error?.path == file.path)
            #expect(error?.message.contains(file.path) == true)
        }
    }

    /// What happens to a file of three bytes after the form was laid out.
    static let changes: [(about: String, change: @Sendable (URL) throws -> Void, code: FormError.Code)] = [
        ("it grew", { try Data([1, 2, 3, 4]).write(to: $0) }, .fileChanged),
        ("it shrank", { try Data([1]).write(to: $0) }, .fileChanged),
        (
            "it was written to, its size the same",
            { file in
                try Data([3, 2, 1]).write(to: file)
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
            }, .fileChanged
        ),
        ("it was removed", { try FileManager.default.removeItem(at: $0) }, .fileMissing),
        (
            "it became a folder",
            { file in
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            }, .fileNotRegular
        ),
    ]

    @Test(arguments: changes)
    func `a file that changed after the form was laid out is an error that names it`(
        about: String, change: @Sendable (URL) throws -> Void, code: FormError.Code
    ) throws {
        let file = try folder.file("a.jpg", [1, 2, 3])
        let layout = try form(file).layout()
        try change(file)
        let reader = try layout.reader()
        for _ in 0..<2 {
            let error = #expect(throws: FormError.self) { try reader.readAll() }
            #expect(error?.code == code)
            #expect(error?.path == file.path)
        }
    }

    @Test
    func `a URL that is no file's is not taken for a path`() throws {
        let url = try #require(URL(string: "https://example.com/usr/bin/env"))
        let error = #expect(throws: FormError.self) { try form(url).layout() }
        #expect(error?.code == .notFileURL)
    }

    @Test
    func `a file that is written anew while it is sent, its size the same, is noticed before the body is complete`()
        throws
    {
        let file = try folder.file("a.jpg", [UInt8](repeating: 1, count: 1000))
        let layout = try form(file).layout()
        let reader = try layout.reader()
        var buffer = [UInt8](repeating: 0, count: 500)
        _ = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
        let time = Date(timeIntervalSince1970: 1)
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
        let error = #expect(throws: FormError.self) { try reader.readAll() }
        #expect(error?.code == .fileChanged)
        #expect(reader.position < layout.contentLength ?? 0)
    }

    @Test
    func `a file that changes while it is sent is noticed before the body is complete`() throws {
        let file = try folder.file("a.jpg", [UInt8](repeating: 1, count: 1000))
        let layout = try form(file).layout()
        let reader = try layout.reader()
        var buffer = [UInt8](repeating: 0, count: 500)
        _ = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: 900)
        try handle.close()
        let error = #expect(throws: FormError.self) { try reader.readAll() }
        #expect(error?.code == .fileChanged)
        #expect(reader.position < layout.contentLength ?? 0)
    }
}
