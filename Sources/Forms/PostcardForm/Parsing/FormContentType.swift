/// The `Content-Type` of a form, or of a part with several files.
struct FormContentType {
    let boundary: String

    /// Reads the boundary of a Content-Type. Throws ``FormProblem`` if the value has another media type, no boundary,
    /// two boundaries, or an invalid boundary.
    init(_ value: String, mediaType: StaticString = "multipart/form-data") throws(FormProblem) {
        let bytes = ContiguousArray(value.utf8)
        let header = bytes.span
        /// The problem of a missing semicolon before the boundary; `other` if the semicolon is there.
        func problem(_ other: FormProblem) -> FormProblem {
            guard let found = Self.separator(in: bytes) else { return other }
            let shown = bytes.count <= 200 ? " \(value.debugDescription)" : ""
            return FormProblem(.malformedContentType, at: 0, "The Content-Type\(shown) has \(found).")
        }
        let content: HeaderParameters
        do {
            content = try HeaderParameters(header, in: 0..<header.count)
        } catch {
            throw problem(
                FormProblem(.malformedContentType, at: 0, "The Content-Type is malformed. \(error.reason)"))
        }
        if content.value.isEmpty { throw FormProblem(.missingContentType, at: 0, "The request has no Content-Type.") }
        guard header.holds(mediaType, in: content.value) else {
            let found = header.repairedText(in: content.value)
            throw problem(
                FormProblem(
                    .notFormData, at: 0, "The Content-Type is \(found.quoted), not multipart/form-data."))
        }
        var boundary: [UInt8]?
        var isInPieces = false
        let duplicate = FormProblem(.duplicateBoundary, at: 0, "The Content-Type names two boundaries that differ.")
        for parameter in content.parameters {
            // A boundary in pieces is refused: some receivers join the pieces as in RFC 2231, and others ignore them.
            if header.begins("boundary*", in: parameter.name) { isInPieces = true }
            guard header.holds("boundary", in: parameter.name) else { continue }
            let found = parameter.bytes(in: header)
            guard boundary == nil || boundary == found else { throw duplicate }
            boundary = found
        }
        if isInPieces {
            guard boundary == nil else { throw duplicate }
            throw FormProblem(
                .malformedContentType, at: 0,
                "The Content-Type writes its boundary as boundary*, which many receivers do not read.")
        }
        guard let boundary else {
            throw problem(FormProblem(.missingBoundary, at: 0, "The Content-Type names no boundary."))
        }
        if let reason = Boundary.reasonToRejectReceived(boundary) { throw .invalidBoundary(reason) }
        self.boundary = String(decoding: boundary, as: UTF8.self)
    }

    /// The text in place of the semicolon before the boundary; `nil` if there is a semicolon, or no boundary.
    private static func separator(in bytes: ContiguousArray<UInt8>) -> String? {
        let name = Array("boundary".utf8)
        let found = bytes.indices.first { index in
            bytes.count - index > name.count && zip(name, bytes[index...]).allSatisfy { $0 == $1.asciiLowercased }
        }
        guard let found, bytes[(found + name.count)...].first(where: { !$0.isBlank }) == .equals else { return nil }
        let before = bytes[..<found].reversed().drop { $0.isBlank }.first
        switch before {
        case UInt8(ascii: ","): return "a comma before its boundary, where a semicolon belongs"
        case let byte? where byte.isTokenCharacter && bytes[found - 1].isBlank:
            return "no semicolon before its boundary"
        default: return nil
        }
    }
}
