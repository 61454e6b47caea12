import HTTPTypes
import Logging
import PostcardForm
import PostcardFoundation
import PostcardWire

/// The log of an upload, without values of form fields and without secret values of header fields.
struct UploadLog: Sendable {
    private let logger: Logger?

    /// Makes the log of one upload.
    ///
    /// - Parameters:
    ///   - logger: The logger; `nil` logs nothing.
    ///   - id: The `upload-id` of all lines.
    init(_ logger: Logger?, id: @autoclosure () -> String) {
        var logger = logger
        logger?[metadataKey: "upload-id"] = "\(id())"
        self.logger = logger
    }

    /// Logs that a request is being sent.
    ///
    /// - Parameter isSecret: Whether the path gives access to the upload on the server, and must not be logged.
    func sending(_ request: UploadRequest, attempt: Int, isSecret: Bool = false) {
        guard let logger, logger.logLevel <= .debug else { return }
        let url = isSecret ? "\(request.url.scheme ?? "")://\(request.url.address)/…" : request.url.withoutSecrets
        logger.debug(
            "Sending a form",
            metadata: [
                "attempt": "\(attempt)", "method": "\(request.method)", "url": "\(url)",
                "parts": "\(request.body?.parts.count ?? 0)",
                "bytes": "\(request.body.map { $0.contentLength.map(String.init) ?? "unknown" } ?? "0")",
                "header-fields": .array(request.headerFields.map { "\($0.withoutSecrets)" }),
            ])
    }

    func responded(_ response: UploadResponse) {
        logger?.debug(
            "The server responded",
            metadata: [
                "status": "\(response.status.code)", "bytes-sent": "\(response.bytesSent)",
                "header-fields": .array(response.headerFields.map { "\($0.withoutSecrets)" }),
            ])
    }

    /// Logs a failure without its message, in which the server may quote the form.
    func failed(_ error: UploadError) {
        var metadata: Logger.Metadata = [
            "attempt": "\(error.attempts)", "code": "\(error.code)", "delivery": "\(error.delivery.rawValue)",
        ]
        if let status = error.response?.status.code { metadata["status"] = "\(status)" }
        if let phase = error.phase { metadata["phase"] = "\(phase.rawValue)" }
        logger?.info("An attempt failed", metadata: metadata)
    }

    func preparingAgain(within limits: FormSizeLimits) {
        var metadata: Logger.Metadata = [:]
        if let bytes = limits.maximumBodyBytes { metadata["maximum-body-bytes"] = "\(bytes)" }
        if let bytes = (limits.maximumBytesByName.values + [limits.maximumFileBytes].compactMap(\.self)).min() {
            metadata["maximum-file-bytes"] = "\(bytes)"
        }
        if let bytes = limits.maximumBytesOfAllFiles { metadata["maximum-bytes-of-all-files"] = "\(bytes)" }
        logger?.info("The form is too large for the server and is prepared again", metadata: metadata)
    }

    func retrying(after delay: Duration, attempt: Int) {
        logger?.info("Trying again", metadata: ["attempt": "\(attempt)", "delay": "\(delay)"])
    }
}

extension URL {
    /// The scheme, host, port and path of the URL, without its user name, password and query.
    fileprivate var withoutSecrets: String {
        "\(scheme ?? "")://\(address)\(path(percentEncoded: true))"
    }
}

extension HTTPField {
    /// The field for the log. Its value is included only if fields with its name are known to contain no secrets.
    fileprivate var withoutSecrets: String {
        "\(name): \(Self.open.contains(name.canonicalName) ? value : "…")"
    }

    private static let open: Set<String> = [
        "accept", "accept-encoding", "accept-language", "age", "allow", "alt-svc", "cache-control", "connection",
        "content-encoding", "content-language", "content-length", "content-type", "date", "etag", "expect", "expires",
        "idempotency-key", "last-modified", "retry-after", "server", "transfer-encoding", "upload-complete",
        "upload-draft-interop-version", "upload-incomplete", "upload-length", "upload-limit", "upload-offset",
        "user-agent", "vary", "via", "x-request-id",
    ]
}
