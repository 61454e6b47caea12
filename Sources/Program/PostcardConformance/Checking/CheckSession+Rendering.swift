import HTTPTypes
import PostcardWire

extension CheckSession {
    /// Makes the request of a step. Throws `CheckInterruption` if the step needs a value that the server has not sent.
    func render(_ step: Step) throws -> (address: ServerAddress, request: RenderedRequest) {
        let address = try address(of: step)
        var bytes: [UInt8]?
        var pause = Int.max
        if let (start, end) = step.content {
            let start = try position(start)
            bytes = content.bytes(from: start, to: try position(end))
            if let extent = step.pacing.pause { pause = max(try position(extent) - start, 0) }
        }
        let own = step.isAnonymous ? [] : settings.headerFields.map { (name: $0.name.rawName, value: $0.value) }
        let fields = try step.fields.compactMap { field in
            try settings.version.field(field, of: step).map {
                (name: $0.name, value: try filled($0.value))
            }
        }
        let request = RenderedRequest(
            method: step.method, target: address.target, authority: address.authority, fields: own + fields,
            content: bytes, pause: pause, isChunked: step.isChunked)
        return (address, request)
    }

    private func address(of step: Step) throws -> ServerAddress {
        switch step.target {
        case .form: return server
        case .upload:
            guard let upload else { throw missingUpload }
            return upload
        case .unknownUpload:
            guard let unknown = upload?.changedAtEnd else { throw missingUpload }
            return unknown
        }
    }

    func position(_ extent: Extent) throws -> Int {
        guard let position = extent.position(in: content.bytes.count, seen: seenOffset) else {
            throw CheckInterruption.notApplicable("the server has sent no Upload-Offset")
        }
        return position
    }

    /// A value for a message. Known names in braces are filled in.
    func shown(_ value: String) -> String { (try? filled(value)) ?? value }

    /// Replaces the names in braces in a value.
    private func filled(_ value: String) throws -> String {
        guard let open = value.firstIndex(of: "{"), let close = value[open...].firstIndex(of: "}") else { return value }
        let name = String(value[value.index(after: open)..<close])
        let rest = try filled(String(value[value.index(after: close)...]))
        return value[..<open] + (try text(of: name)) + rest
    }

    private func text(of name: String) throws -> String {
        if let extent = Extent(rawValue: name) { return String(try position(extent)) }
        switch name {
        case "type": return content.contentType
        case "version": return settings.version.interopNumber.map { String($0) } ?? ""
        case "aboveMaximum": return try above(knowledge.limits.maximumBytes, "max-size")
        case "aboveMaximumAppend": return try above(knowledge.limits.maximumAppendBytes, "max-append-size")
        default: throw CheckInterruption.unchecked("nothing is named \(name)")
        }
    }

    private func above(_ limit: Int64?, _ name: String) throws -> String {
        guard let limit else { throw CheckInterruption.notApplicable("the server announces no \(name)") }
        return String(limit + 1)
    }
}

extension Step.Pacing {
    /// The position in the content at which the delivery pauses; `nil` for a delivery without a pause.
    fileprivate var pause: Extent? {
        switch self {
        case .whole, .paced, .headOnly: nil
        case .paused(let position), .quiet(let position), .cut(let position): position
        }
    }
}

extension ResumptionVersion {
    /// A header field of a step, as this version of the resumable upload draft has it; `nil` if the version has none.
    fileprivate func field(
        _ field: (name: String, value: String), of step: Step
    ) -> (name: String, value: String)? {
        switch field.name {
        case "Upload-Draft-Interop-Version" where self == .newest && field.value == Step.ownVersion: return nil
        case "Upload-Length" where !has(.length): return nil
        case "Content-Type" where step.method == "PATCH" && !has(.partialUploadType): return nil
        case "Upload-Complete" where !has(.completeField):
            // In this version, the field is `Upload-Incomplete`, with the opposite value.
            let digit = field.value.hasPrefix("?1") ? "?0" : field.value.hasPrefix("?0") ? "?1" : nil
            return ("Upload-Incomplete", digit.map { $0 + field.value.dropFirst(2) } ?? field.value)
        default: return field
        }
    }
}

/// The bytes of a request.
struct RenderedRequest: Sendable {
    let head: [UInt8]
    /// The bytes of the content before the pause, with the transfer coding of the message.
    let beginning: [UInt8]
    /// The bytes of the content after the pause.
    let rest: [UInt8]

    /// Makes the bytes of a request. The header fields for the length of the content are added to `fields`. `content`
    /// is `nil` for a request without content. `pause` is the number of content bytes before the pause.
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
