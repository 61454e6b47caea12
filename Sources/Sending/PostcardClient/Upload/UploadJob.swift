import HTTPTypes
import PostcardForm
import PostcardFoundation

/// What a caller wants to be uploaded, and where.
struct UploadJob: Sendable {
    var content: Content
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    /// The statuses of success; `nil` means those of the client.
    var acceptedStatuses: Set<Int>?
    /// Whether early responses count; `nil` means as the client says.
    var acceptsEarly: Bool?
    /// The signed form in which the form is sent to an object store, and the time by which it may have expired; `nil` for
    /// other servers.
    var presigned: (form: PresignedForm, now: Date?)?
    /// Called with each body that is made of the form.
    var noteLayout: (@Sendable (FormLayout) -> Void)?
    /// Whether the form is sent to an object store, which gets no credentials of the app and needs no key.
    var isForObjectStore = false
    /// The upload resource with what an earlier process has sent.
    var resource: URL?
    /// Saves the upload resource for a later process.
    var saveResource: (@Sendable (URL?) throws -> Void)?
    /// What servers may have of the form from earlier processes.
    var delivery = PossibleDelivery.neverArrived
    /// Whether an error of an interceptor is thrown as an ``InterceptorError``, which a queue handles differently.
    var distinguishesInterceptors = false
    /// How long the upload has taken before it was passed to this client.
    var elapsed = Duration.zero

    enum Content: Sendable {
        case form(MultipartForm)
        case layout(FormLayout)

        /// Whether a part is prepared again for a limit that the server reports.
        var followsServerLimit: Bool { if case .form(let form) = self { form.followsServerLimit } else { false } }
    }

    init(_ content: Content, url: URL, method: HTTPRequest.Method, headerFields: HTTPFields) {
        self.content = content
        self.url = url
        self.method = method
        self.headerFields = headerFields
    }
}
