import PostcardForm
import PostcardFoundation

package enum ContentSource: Sendable, Hashable {
    /// A multipart form with a text field and a text file.
    case form
    /// Bytes of the type `application/octet-stream`.
    case octets
    case given(contentType: String, bytes: [UInt8])

    /// The usual size of a form or of octets, in bytes. The server's limits may require another size.
    static let ordinaryBytes = 4096
    /// The size of the large content, in bytes, for servers that report progress only after many bytes.
    static let largeBytes = 1 << 20

    /// Makes the whole content of about the given size. A content from the caller keeps its size.
    func content(ofAbout size: Int) async throws -> UploadContent {
        switch self {
        case .form:
            var form = MultipartForm()
            form.append("conformance", named: "note")
            let lines = Self.lines(max(size - 400, 64))
            form.append(
                FormPart(
                    name: "file", filename: "conformance.txt", contentType: .plainText, content: .bytes(Data(lines))))
            let layout = try form.layout()
            return UploadContent(contentType: layout.contentType, bytes: Array(try await layout.data()))
        case .octets:
            return UploadContent(contentType: "application/octet-stream", bytes: Self.lines(max(size, 64)))
        case .given(let contentType, let bytes):
            return UploadContent(contentType: contentType, bytes: bytes)
        }
    }

    /// Makes lines of text that all differ, so that misplaced bytes are noticed.
    private static func lines(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 40)
        var number = 0
        while bytes.count < count {
            number += 1
            bytes += Array("line \(number) of a conformance check\n".utf8)
        }
        return Array(bytes.prefix(count))
    }
}

/// The representation (RFC 9110 §3.2) that a check uploads in one or several requests.
struct UploadContent: Sendable {
    let contentType: String
    var bytes: [UInt8]

    enum Kind: Sendable, Hashable {
        /// The complete and unchanged content, which the server processes.
        case whole
        /// A content that the server refuses after receiving it: a form without its last bytes.
        case broken
        /// A content that the server can refuse early: a form whose first part has an invalid header.
        case malformed
        /// A content that takes some time to receive. Its upload is never completed.
        case large
    }

    /// The content without its last bytes.
    var broken: UploadContent {
        UploadContent(contentType: contentType, bytes: bytes.dropLast(12))
    }

    /// The content with a space in place of its first colon, which belongs to a header.
    var malformed: UploadContent {
        var content = self
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) { content.bytes[colon] = UInt8(ascii: " ") }
        return content
    }

    /// The bytes between two positions, with filler bytes after the end of the content.
    func bytes(from start: Int, to end: Int) -> [UInt8] {
        guard start < end else { return [] }
        let known = start < bytes.count ? Array(bytes[start..<min(end, bytes.count)]) : []
        return known + [UInt8](repeating: UInt8(ascii: "x"), count: end - start - known.count)
    }
}

/// A position in the content.
enum Extent: String, Sendable {
    /// The offset of the first byte.
    case none
    case quarter, half
    /// The offset one byte after ``half``.
    case afterHalf
    /// Three quarters of the content.
    case most
    /// The offset after the last byte.
    case all
    /// The offset one byte after ``all``.
    case beyond
    /// An offset far after the end of the content.
    case far
    /// The last `Upload-Offset` of the server.
    case seen

    /// The offset of the position, in bytes; `nil` for ``seen`` if the server has sent no offset.
    func position(in count: Int, seen: Int64?) -> Int? {
        switch self {
        case .none: 0
        case .quarter: count / 4
        case .half: count / 2
        case .afterHalf: count / 2 + 1
        case .most: count / 4 * 3
        case .all: count
        case .beyond: count + 1
        case .far: count + 1_000_000_000
        case .seen: seen.flatMap { Int(exactly: $0) }
        }
    }
}
