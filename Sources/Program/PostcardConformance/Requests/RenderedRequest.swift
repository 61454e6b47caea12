/// The bytes of a request.
struct RenderedRequest: Sendable {
    let head: [UInt8]
    /// The content before the pause of its delivery, with the codings of the message.
    let beginning: [UInt8]
    /// The content after it.
    let rest: [UInt8]

    /// - Parameters:
    ///   - fields: The field lines, without those that frame the content.
    ///   - content: `nil` for a request without content.
    ///   - pause: The number of content bytes before the pause.
    init(
        method: String, target: String, authority: String, fields: [(name: String, value: String)],
        content: [UInt8]?, pause: Int, isChunked: Bool
    ) {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: \(authority)"] + fields.map { "\($0.name): \($0.value)" }
        let content = content.map { ($0.prefix(pause), $0.dropFirst(pause)) }
        if isChunked {
            lines.append("Transfer-Encoding: chunked")
            beginning = Self.chunk(content?.0 ?? [])
            rest = Self.chunk(content?.1 ?? []) + Array("0\r\n\r\n".utf8)
        } else {
            let isFramed = fields.contains { $0.name == "Content-Length" }
            if let content, !isFramed { lines.append("Content-Length: \(content.0.count + content.1.count)") }
            beginning = Array(content?.0 ?? [])
            rest = Array(content?.1 ?? [])
        }
        head = Array((lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)
    }

    private static func chunk(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        bytes.isEmpty ? [] : Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
    }
}
