public import Foundation
public import HTTPTypes
public import PostcardForm

extension UploadClient {
    /// Sends a form and updates a `Foundation.Progress`, such as the one that a UIKit or AppKit progress bar observes.
    ///
    /// ```swift
    /// bar.observedProgress = progress
    /// let response = try await client.upload(form, to: url, reportingTo: progress)
    /// ```
    ///
    /// Each part of the form becomes a child, in order, counted in bytes. `progress` counts the bytes of all parts, and
    /// one more unit for the server's response. `progress` also has the throughput in bytes per second and the
    /// remaining time. The progress never falls: while a retry sends bytes again, it stays the same. Cancelling the
    /// progress cancels the upload.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields.
    ///   - progress: A progress for this upload alone, which may be a child of another progress.
    /// - Returns: The response, whose status is one of ``ResponseOptions/acceptedStatuses``.
    /// - Throws: The errors of ``upload(_:to:method:headerFields:progress:)``; `CancellationError` if the progress is
    ///   cancelled.
    @discardableResult
    public func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), reportingTo progress: Progress
    ) async throws -> UploadResponse {
        try Task.checkCancellation()
        if progress.isCancelled { throw CancellationError() }
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

/// A progress with a child for each part of a form, counted in bytes, and one unit for the server's response. That unit
/// keeps the progress unfinished until the response arrives, because a finished progress cannot be cancelled.
private struct ProgressTree {
    private let root: Progress
    private var children: [Progress]?

    init(_ root: Progress) {
        self.root = root
        root.kind = .file
    }

    /// Updates the tree. The children are made at the first call, when the parts are known.
    mutating func note(_ progress: UploadProgress) {
        let parts = progress.parts
        for (child, part) in zip(children ?? addChildren(for: parts), parts) { update(child, with: part) }
        root.setUserInfoObject(progress.bytesPerSecond.map { Int(clamping: Int64($0)) }, forKey: .throughputKey)
        root.setUserInfoObject(progress.timeRemaining.map { $0 / .seconds(1) }, forKey: .estimatedTimeRemainingKey)
    }

    /// Finishes the tree and its children. The server may have responded before the whole form was sent.
    func finish() {
        for child in children ?? [] where !child.isFinished {
            child.totalUnitCount = max(child.totalUnitCount, child.completedUnitCount, 1)
            child.completedUnitCount = child.totalUnitCount
        }
        root.completedUnitCount = root.totalUnitCount
    }

    private mutating func addChildren(for parts: [UploadProgress.Part]) -> [Progress] {
        let pending = parts.map { units(of: $0) ?? 1 }
        root.totalUnitCount = pending.reduce(1, +)
        let added = zip(parts, pending).map { part, pending in
            let child = Progress(totalUnitCount: units(of: part) ?? -1)
            child.kind = .file
            root.addChild(child, withPendingUnitCount: pending)
            return child
        }
        children = added
        return added
    }

    /// Updates the progress of a part without reducing it: bytes that a retry sends again count once.
    private func update(_ child: Progress, with part: UploadProgress.Part) {
        guard !child.isFinished else { return }
        if let units = units(of: part), child.totalUnitCount != units { child.totalUnitCount = units }
        let sent = part.totalBytes == 0 && part.hasBegun ? 1 : part.bytesSent
        if sent > child.completedUnitCount { child.completedUnitCount = sent }
    }

    /// The number of units for a part. An empty part counts as one, because a progress without units never finishes.
    private func units(of part: UploadProgress.Part) -> Int64? {
        part.totalBytes.map { max($0, 1) }
    }
}
