/// The `Content-Type` of a request with a form, or of a part with several files.
struct FormContentType {
    let boundary: String

    /// - Parameters:
    ///   - value: The header field's value.
    ///   - mediaType: The type that it must name.
    /// - Throws: ``FormProblem`` if the value has another media type, no boundary, two that differ, or an invalid one.
    init(_ value: String, mediaType: StaticString = "multipart/form-data") throws(FormProblem) {
        let bytes = ContiguousArray(value.utf8)
        let header = bytes.span
        let content: HeaderParameters
        do {
            content = try HeaderParameters(header, in: 0..<header.count)
        } catch {
            throw FormProblem(.malformedContentType, at: 0, "The Content-Type is malformed. \(error.reason)")
        }
        if content.value.isEmpty { throw FormProblem(.missingContentType, at: 0, "The request has no Content-Type.") }
        guard header.holds(mediaType, in: content.value) else {
            let found = header.repairedText(in: content.value).lowercased()
            throw FormProblem(
                .notFormData, at: 0, "The Content-Type is \(found.debugDescription), not multipart/form-data.")
        }
        var boundary: [UInt8]?
        var isInPieces = false
        let duplicate = FormProblem(.duplicateBoundary, at: 0, "The Content-Type names two boundaries that differ.")
        for parameter in content.parameters {
            // Names of RFC 2231, which some receivers join and others ignore.
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
            throw FormProblem(.missingBoundary, at: 0, "The Content-Type names no boundary.")
        }
        if let fault = Boundary.faultForReceiving(in: boundary) { throw .invalidBoundary(fault) }
        self.boundary = String(decoding: boundary, as: UTF8.self)
    }
}
