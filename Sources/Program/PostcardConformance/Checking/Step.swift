/// A template for a request of a check. A session fills in addresses, offsets and bytes.
///
/// The value of a field may name positions and digests in braces, such as `{half}` or `{digest}`.
struct Step: Sendable {
    /// The resource to which a request is sent.
    enum Target: Sendable {
        /// The checked URL, to which contents are uploaded.
        case form
        /// The upload resource of the last creation.
        case upload
        /// An upload resource that does not exist.
        case unknownUpload
    }

    /// The way in which the content of a request is sent.
    enum Pacing: Sendable {
        case whole
        /// Pauses at a position until the server has sent a 104, or has not sent one for a while.
        case paused(at: Extent)
        /// Pauses at a position long enough to notice a 104 that must not be sent.
        case quiet(at: Extent)
        /// Closes the connection at a position in the content.
        case cut(at: Extent)
        /// Sends the content in pieces, with pauses until the server reports its progress.
        case paced
        /// Sends only the head, with the announced length of the content.
        case headOnly
    }

    let method: String
    let target: Target
    var fields: [(name: String, value: String)]
    /// The start and end of the sent section of the content.
    var content: (start: Extent, end: Extent)?
    var isChunked = false
    var pacing = Pacing.whole
    /// Whether the check needs a 104 with the upload resource. If the server sends none, the check is not applicable.
    var needsInterim = false
    /// Whether the response is ignored. Otherwise, a step without expectations must succeed before the next step.
    var isIgnored = false
    /// Whether the request is repeated for a short time until the expectations are met.
    var isRepeated = false
    /// Whether the request lacks the caller's header fields.
    var isAnonymous = false
    /// The expectations of the responses; empty for a request that only prepares for others.
    var expectations: [Expectation] = []

    /// The placeholder for the version of the resumable upload draft in the value of a field.
    static let ownVersion = "{version}"

    private init(
        _ method: String, _ target: Target, _ fields: [(String, String)] = [], content: (Extent, Extent)? = nil
    ) {
        self.method = method
        self.target = target
        self.fields = [("Upload-Draft-Interop-Version", Self.ownVersion)] + fields
        self.content = content
    }

    // MARK: - The requests of the draft

    /// Creates an upload with the beginning of the content (§4.2).
    static func create(_ end: Extent, isComplete: Bool = false) -> Step {
        Step(
            "POST", .form, [("Content-Type", "{type}"), ("Upload-Complete", isComplete ? "?1" : "?0")],
            content: (.none, end))
    }

    /// Uploads the content in one ordinary request, which cannot be resumed.
    static func conventional(_ end: Extent = .all) -> Step {
        Step("POST", .form, [("Content-Type", "{type}")], content: (.none, end)).without("Upload-Draft-Interop-Version")
    }

    /// Appends a piece of the content (§4.4).
    static func append(_ start: Extent, _ end: Extent, isComplete: Bool = false) -> Step {
        Step(
            "PATCH", .upload,
            [
                ("Content-Type", "application/partial-upload"), ("Upload-Offset", "{\(start.rawValue)}"),
                ("Upload-Complete", isComplete ? "?1" : "?0"),
            ], content: (start, end))
    }

    /// Retrieves the offset (§4.3).
    static let head = Step("HEAD", .upload)
    /// Retrieves the offset with GET instead of HEAD (§4.3).
    static let get = Step("GET", .upload)
    /// Cancels the upload (§4.5).
    static let delete = Step("DELETE", .upload)
    /// Asks whether the server supports resumable uploads, and for its limits (§4.1.4).
    static let options = Step("OPTIONS", .form)
    /// Retrieves the offset of an upload that does not exist.
    static let headOfUnknown = Step("HEAD", .unknownUpload)

    // MARK: - Changes

    /// Sets a header field.
    func with(_ name: String, _ value: String) -> Step {
        var step = without(name)
        step.fields.append((name, value))
        return step
    }

    /// Adds another line of a header field.
    func adding(_ name: String, _ value: String) -> Step {
        var step = self
        step.fields.append((name, value))
        return step
    }

    func without(_ name: String) -> Step {
        var step = self
        step.fields.removeAll { $0.name == name }
        return step
    }

    /// A copy of the request with another position as its `Upload-Offset`.
    func at(_ offset: Extent) -> Step { with("Upload-Offset", "{\(offset.rawValue)}") }

    var chunked: Step { changed { $0.isChunked = true } }
    var headOnly: Step { changed { $0.pacing = .headOnly } }
    var paced: Step { changed { $0.pacing = .paced } }
    var ignored: Step { changed { $0.isIgnored = true } }
    var repeated: Step { changed { $0.isRepeated = true } }
    var anonymous: Step { changed { $0.isAnonymous = true } }
    /// A copy of the request for checks that need a 104 with the upload resource.
    var announced: Step { changed { $0.needsInterim = true } }

    func expecting(_ expectations: Expectation...) -> Step { changed { $0.expectations = expectations } }

    func paused(at position: Extent = .half) -> Step { changed { $0.pacing = .paused(at: position) } }
    func quiet(at position: Extent = .half) -> Step { changed { $0.pacing = .quiet(at: position) } }
    func cut(at position: Extent) -> Step { changed { $0.pacing = .cut(at: position) } }

    private func changed(_ change: (inout Step) -> Void) -> Step {
        var step = self
        change(&step)
        return step
    }
}
