/// Requests as they go over the wire, all with the boundary `b`.
package enum Form {
    /// A form of one field.
    package static let small = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--b--\r\n"

    /// The beginning of a form, up to a file's content.
    package static let fileHeader = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\n\r\n"

    package static let end = "\r\n--b--\r\n"

    package static let contentType = "Content-Type: multipart/form-data; boundary=b"

    /// A request with a body of known length that asks for the connection to be closed.
    package static func request(
        body: String, contentType: String = contentType, fields: [String] = [], to path: String = "/uploads"
    ) -> String {
        let lines =
            [
                "POST \(path) HTTP/1.1", "Host: a", "Connection: close", "Content-Length: \(body.utf8.count)",
                contentType,
            ]
            + fields
        return lines.filter { !$0.isEmpty }.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    /// A request's head.
    package static func head(contentLength: Int, fields: [String] = []) -> String {
        (["POST /uploads HTTP/1.1", "Host: a", contentType, "Content-Length: \(contentLength)"] + fields)
            .joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// A request with the given chunks as its body.
    package static func chunked(_ body: String) -> String {
        ["POST /uploads HTTP/1.1", "Host: a", contentType, "Transfer-Encoding: chunked"].joined(separator: "\r\n")
            + "\r\n\r\n" + body
    }

    package static func part(_ header: String, _ content: String = "value") -> String {
        "--b\r\n\(header)\r\n\r\n\(content)\r\n--b--\r\n"
    }
}

/// A form with one file of bytes that do not repeat, under the boundary `b`.
package struct LargeForm: Sendable {
    package let content: [UInt8]
    package let bytes: [UInt8]

    package init(bytes count: Int) {
        var state: UInt64 = 0x2545_F491_4F6C_DD1D
        content = (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state)
        }
        bytes = Array(Form.fileHeader.utf8) + content + Array(Form.end.utf8)
    }
}
