public import HTTPTypes
public import Logging

/// What uploads report while they run, and to whom.
public struct ReportingOptions: Sendable {
    /// The minimum time between two reports of progress. Defaults to 50 milliseconds, which is more often than a screen
    /// can show. An attempt's first step, the end of each part and the last step are always reported.
    public var progressInterval = Duration.milliseconds(50)

    /// The logger for uploads: every request and response at level `debug`, failures and retries at `info`. All lines
    /// of an upload have the same `upload-id`. Values of fields are never logged, and of header fields only those that
    /// contain no secrets. Defaults to `nil`: nothing is logged.
    public var logger: Logger?

    /// The name of a header field that sends the `upload-id` of the log to the server, such as `X-Request-ID`. Defaults
    /// to `nil`.
    public var requestIDField: HTTPField.Name?

    /// Makes the defaults.
    public init() {}
}
