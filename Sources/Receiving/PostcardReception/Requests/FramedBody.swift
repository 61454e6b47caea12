import HTTPTypes
import NIOCore
import PostcardForm
import PostcardFoundation
import Synchronization

/// Turns a body that is not a form into a form with one file, by adding bytes before and after it. The same limits,
/// rules, screening and records then apply as for any form.
struct FramedBody: Sendable {
    /// The name of the field that contains the file.
    static let fieldName = "file"

    let contentType: String
    /// The Content-Disposition parameters that name the file.
    let parameters: String
    let beginning: ByteBuffer
    let end: ByteBuffer

    /// The number of added bytes.
    var byteCount: Int64 { Int64(beginning.readableBytes + end.readableBytes) }

    /// Makes a form of a request's body. `Content-Disposition` (RFC 6266) or the end of the path names the file.
    init(of request: IncomingRequest) {
        let parameters = Self.parameters(of: request)
        // The boundary cannot be guessed, so a body cannot contain it.
        let boundary = Boundary()
        var header = "Content-Disposition: form-data; name=\"\(Self.fieldName)\"\(parameters)\r\n"
        if let type = request.headers[.contentType], !type.isEmpty { header += "Content-Type: \(type)\r\n" }
        self.parameters = parameters
        contentType = "multipart/form-data; boundary=\(boundary)"
        beginning = ByteBuffer(string: "--\(boundary)\r\n\(header)\r\n")
        end = ByteBuffer(string: "\r\n--\(boundary)--\r\n")
    }

    static func isForm(_ contentType: String) -> Bool {
        let type = contentType.utf8.prefix { $0 != .semicolon }.drop(while: \.isBlank)
        guard let last = type.lastIndex(where: { !$0.isBlank }) else { return false }
        return type[...last].isEqualIgnoringCase("multipart/form-data")
    }

    private static func parameters(of request: IncomingRequest) -> String {
        let named = request.headers[.contentDisposition].map(ContentDisposition.fileParameters) ?? ""
        let segment = (request.head.path ?? "").prefix { $0 != "?" && $0 != "#" }.split(separator: "/").last ?? ""
        return named.isEmpty ? "; filename=\"\(quoted(segment.utf8))\"" : named
    }

    /// The decoded name in a segment of a path (RFC 3986 §2.1), escaped as browsers escape quoted names. Control
    /// characters are removed, because header fields cannot contain them.
    private static func quoted(_ segment: Substring.UTF8View) -> String {
        var rest = segment[...]
        var name: [UInt8] = []
        while var byte = rest.popFirst() {
            if byte == .percent, let high = rest.first?.hexadecimalValue,
                let low = rest.dropFirst().first?.hexadecimalValue
            {
                byte = high << 4 | low
                rest = rest.dropFirst(2)
            }
            switch byte {
            case .quote: name += "%22".utf8
            case ..<0x20, 0x7F: break
            default: name.append(byte)
            }
        }
        return String(streamSafe: name)
    }
}

/// Checks a form while its bytes arrive. A malformed form is refused at its first wrong byte, before the other bytes
/// are sent. After a restart, an unfinished upload has no checker, but every complete form is checked again.
///
/// A class, so that asynchronous functions do not keep copies of its large values. Only the request that holds the
/// upload's lock uses the checker.
final class ArrivingFormChecker: Sendable {
    private let parser: Mutex<CheckedFormParser>

    /// The number of bytes that ``FramedBody`` adds before the body.
    private let skipped: Int64

    /// - Parameter frame: Turns a body with a single file into a form; `nil` if the body already is a form.
    /// - Throws: ``UploadProblem`` if the rules do not allow the file in a body that is not a form.
    init(parser: CheckedFormParser, frame: FramedBody?) throws {
        self.parser = Mutex(parser)
        skipped = Int64(frame?.beginning.readableBytes ?? 0)
        guard let frame else { return }
        do {
            try check(frame.beginning)
        } catch let problem as FormProblem {
            throw UploadProblem(problem)
        }
    }

    /// The number of checked bytes of the body.
    var offset: Int64 { parser.withLock { $0.offset } - skipped }

    /// Checks the next bytes of the body. Throws `FormProblem` if the form is malformed.
    func check(_ bytes: ByteBuffer) throws {
        try parser.withLock { parser in
            var position = 0
            while try parser.nextEvent(in: bytes.readableBytesSpan, at: &position) != nil {}
        }
    }
}
