/// The `Content-Type` of what is made of parts: a request with a form, or a part with several files.
struct FormContentType {
    let boundary: String

    /// - Parameters:
    ///   - value: The header field's value.
    ///   - mediaType: The type that it must name.
    /// - Throws: ``FormProblem`` where the value is another media type, or names no boundary, two that differ, or one
    ///   that cannot be read.
    init(_ value: String, mediaType: String = "multipart/form-data") throws(FormProblem) {
        let content: HeaderParameters
        do {
            content = try HeaderParameters(Array(value.utf8)[...])
        } catch {
            throw .malformedContentType(error.reason)
        }
        if content.value.isEmpty { throw .missingContentType }
        guard content.value == mediaType else { throw .notFormData(content.value) }
        let boundaries = content.parameters.filter { $0.name == "boundary" }
        guard let boundary = boundaries.first else { throw .missingBoundary }
        guard boundaries.allSatisfy({ $0.value == boundary.value }) else { throw .duplicateBoundary }
        if let fault = Boundary.faultForReceiving(in: boundary.value) { throw .invalidBoundary(fault) }
        self.boundary = String(decoding: boundary.value, as: UTF8.self)
    }
}
