package import PostcardFoundation

/// How uploads use the network.
public struct NetworkOptions: Sendable {
    /// The networks that uploads may use. Defaults to all.
    public var allowed = AllowedNetworks.all

    /// How fast forms are sent, for all uploads of this client and its copies together. Defaults to `nil`, no limit.
    public var rateLimit: RateLimit?

    /// The size of a body, in bytes, above which the server is asked whether it wants it before it is sent. Defaults to
    /// `nil`: the server is never asked. A body of unknown length counts as larger.
    ///
    /// A refusal by the request's head alone, such as for missing authorization or a form that is too large, then costs
    /// no more than the head. The question is `Expect: 100-continue` (RFC 9110 §10.1.1), and a server that says nothing
    /// gets the body after a second. On Apple platforms the wait is URLSession's own.
    public var expectContinueAbove: Int64?

    /// Whether a server is asked for its limit before a form that follows it is prepared, as with
    /// `PictureFitting.serverLimit` of `PostcardPictures`. Defaults to `false`: its first refusal says the limit.
    ///
    /// The question is OPTIONS, and the answer `max-size` in `Upload-Limit` (draft-ietf-httpbis-resumable-upload). It has
    /// the header fields of the upload, without what interceptors would add. A server that does not answer within 10
    /// seconds, or refuses, is taken to have no limit until it refuses the form.
    public var asksForLimits = false

    /// Whether an upload continues when the user leaves the app, for as long as the system allows: about half a minute.
    /// Defaults to `false`: the system suspends the app after a few seconds, and the server loses the connection.
    ///
    /// The time includes the preparation of a form and the delays between attempts. What takes longer is suspended, and
    /// its connection is lost when the app runs again: set ``UploadClient/retryPolicy`` too, or use a queue with a background
    /// session, such as `UploadQueue` of `PostcardQueue`. It has no effect where the system suspends no apps, as on macOS
    /// and Linux.
    public var continuesInBackground = false

    /// How the system is asked not to suspend the app.
    package var activity = ExpiringActivity.shared

    /// Makes the defaults.
    public init() {}
}
