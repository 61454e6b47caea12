import HTTPTypes
import NIOCore
import PostcardForm
import PostcardFoundation
import Synchronization

/// Makes a form with one file of a body that is not a form: it has the bytes of the form before and after the file's
/// bytes. The same limits, rules, screening and records then apply as for any form.
struct FramedBody: Sendable {
    /// The name of the field that the file is in.
    static let fieldName = "file"

    /// The Content-Type of the form.
    let contentType: String
    /// The parameters that name the file, as in a Content-Disposition.
    let parameters: String
    let beginning: ByteBuffer
    let end: ByteBuffer

    /// The number of bytes of the form without the body.
    var byteCount: Int64 { Int64(beginning.readableBytes + end.readableBytes) }

    /// Frames the body of a request. The `Content-Disposition` (RFC 6266) names the file, or else the last segment of
    /// the path.
    init(of request: IncomingRequest) {
        let parameters = Self.parameters(of: request)
        // The boundary cannot be guessed, so no body contains it.
        let boundary = Boundary()
        var header = "Content-Disposition: form-data; name=\"\(Self.fieldName)\"\(parameters)\r\n"
        if let type = request.headers[.contentType], !type.isEmpty { header += "Content-Type: \(type)\r\n" }
        self.parameters = parameters
        contentType = "multipart/form-data; boundary=\(boundary)"
        beginning = ByteBuffer(string: "--\(boundary)\r\n\(header)\r\n")
        end = ByteBuffer(string: "\r\n--\(boundary)--\r\n")
    }

    /// Whether a Content-Type is that of a form.
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

    /// The name that a segment of a path stands for (RFC 3986 §2.1), escaped as browsers escape names between quotes.
    /// Control characters are left out, because a header field cannot have them.
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

/// Checks a form while its bytes arrive. A malformed form is refused at the first wrong byte, and not after all of it
/// was sent. Uploads from before a restart have no checker, but every form is checked again when it is complete.
///
/// A class for the same reason as ``IncomingForm``. Only the request that holds the lock uses it.
final class ArrivingFormChecker: Sendable {
    private let parser: Mutex<CheckedFormParser>

    /// The number of bytes of the form before the body.
    private let skipped: Int64

    /// - Parameter frame: Makes a form of a body that is not a form; `nil` for a form.
    /// - Throws: ``UploadProblem`` if the rules do not allow the file that the body becomes.
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

    /// The number of bytes of the body that were checked.
    var offset: Int64 { parser.withLock { $0.offset } - skipped }

    /// Checks the next bytes of the body. Throws `FormProblem`.
    func check(_ bytes: ByteBuffer) throws {
        try parser.withLock { parser in
            var position = 0
            while try parser.nextEvent(in: bytes.readableBytesSpan, at: &position) != nil {}
        }
    }
}
