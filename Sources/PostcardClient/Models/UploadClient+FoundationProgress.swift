public import Foundation
public import HTTPTypes
public import PostcardForm

extension UploadClient {
    /// Sends a form and keeps a `Foundation.Progress` up to date, such as a progress bar of UIKit or AppKit observes.
    ///
    /// ```swift
    /// bar.observedProgress = progress
    /// let response = try await client.upload(form, to: url, reportingTo: progress)
    /// ```
    ///
    /// Each part of the form becomes a child, in the form's order, whose unit is the byte. `progress` counts their
    /// content, and one unit more for the server's answer; it carries the throughput in bytes a second and the time that
    /// is left. Cancelling it cancels the upload. It never falls: while a retry sends again what was sent, it stands
    /// still.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: Where it goes, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields.
    ///   - progress: One of its own for each upload, which may be the child of another.
    /// - Returns: The answer, whose status is one of ``acceptedStatuses``.
    /// - Throws: What ``upload(_:to:method:headerFields:progress:)`` throws; `CancellationError` where the progress is
    ///   cancelled.
    @discardableResult
    public func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), reportingTo progress: Progress
    ) async throws -> UploadResponse {
        let events = events(of: form, to: url, method: method, headerFields: headerFields)
        let task = Task {
            var tree = ProgressTree(progress)
            for try await event in events {
                if let step = event.progress { tree.note(step) }
                guard case .done(let response) = event else { continue }
                tree.finish()
                return response
            }
            throw CancellationError()
        }
        progress.cancellationHandler = { task.cancel() }
        defer { progress.cancellationHandler = nil }
        if progress.isCancelled { task.cancel() }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}
