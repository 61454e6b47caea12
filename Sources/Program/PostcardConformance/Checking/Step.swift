/// A request of a check: a template, which a session fills in with addresses, offsets and bytes.
///
/// A field's value may name positions and digests in braces, such as `{half}` or `{digest}`.
struct Step: Sendable {
    /// What a request is for.
    enum Target: Sendable {
        /// The URL that is checked, where representations are uploaded.
        case form
        /// The upload resource that the last creation named.
        case upload
        /// The server as a whole: `*`.
        case server
        /// An upload resource that does not exist.
        case unknownUpload
    }

    /// How the content is sent.
    enum Delivery: Sendable {
        case whole
        /// Up to a position, then the rest once the server has sent a 104, or has not for a while.
        case paused(at: Extent)
        /// Up to a position, then nothing for long enough to notice a 104 that must not be sent.
        case quiet(at: Extent)
        /// Up to a position, after which the connection is closed.
        case cut(at: Extent)
        /// In pieces, with pauses between them until the server reports its progress.
        case paced
        /// Not at all: the head alone, with the announced length.
        case headOnly
    }

    let method: String
    let target: Target
    var fields: [(name: String, value: String)]
    /// The part of the content that is sent.
    var content: (start: Extent, end: Extent)?
    var isChunked = false
    var delivery = Delivery.whole
    /// Whether the check is not applicable if the server does not name the upload resource in a 104.
    var needsInterim = false
    /// Whether the response is of no interest. Otherwise a step without expectations must succeed before those after it.
    var isIgnored = false
    /// Whether the request is repeated for a moment until the expectations are met.
    var isRepeated = false
    /// Whether the request goes without the caller's own header fields.
    var isAnonymous = false
    /// What is expected of the responses; empty for a request that only prepares for later ones.
    var expectations: [Expectation] = []

    /// The version of the run, as in a field's value.
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

    /// Uploads the content in one request, without offering to resume it.
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
    /// Retrieves the offset by the other method (§4.3).
    static let get = Step("GET", .upload)
    /// Cancels the upload (§4.5).
    static let delete = Step("DELETE", .upload)
    /// Asks for support and limits (§4.1.4).
    static let options = Step("OPTIONS", .form)
    static let optionsOfServer = Step("OPTIONS", .server)
    /// Retrieves the offset of an upload that does not exist.
    static let headOfUnknown = Step("HEAD", .unknownUpload)

    // MARK: - Changes

    /// Sets a field.
    func with(_ name: String, _ value: String) -> Step {
        var step = without(name)
        step.fields.append((name, value))
        return step
    }

    /// Adds another line of a field.
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

    /// The same request, its offset as another position in the content.
    func at(_ offset: Extent) -> Step { with("Upload-Offset", "{\(offset.rawValue)}") }

    var chunked: Step { changed { $0.isChunked = true } }
    var headOnly: Step { changed { $0.delivery = .headOnly } }
    var paced: Step { changed { $0.delivery = .paced } }
    var ignored: Step { changed { $0.isIgnored = true } }
    var repeated: Step { changed { $0.isRepeated = true } }
    var anonymous: Step { changed { $0.isAnonymous = true } }
    /// The request, for checks that need the 104 with the address of the upload resource.
    var announced: Step { changed { $0.needsInterim = true } }

    /// Expects something of the responses.
    func expecting(_ expectations: Expectation...) -> Step { changed { $0.expectations = expectations } }

    func paused(at position: Extent = .half) -> Step { changed { $0.delivery = .paused(at: position) } }
    func quiet(at position: Extent = .half) -> Step { changed { $0.delivery = .quiet(at: position) } }
    func cut(at position: Extent) -> Step { changed { $0.delivery = .cut(at: position) } }

    private func changed(_ change: (inout Step) -> Void) -> Step {
        var step = self
        change(&step)
        return step
    }
}
