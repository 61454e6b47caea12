public import HTTPTypes
public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension UploadClient {
    /// Sends a form for each item, a few at a time.
    ///
    /// The forms are made one by one, when there is room for them: a thousand photos are not a thousand forms in
    /// memory.
    ///
    /// - Parameters:
    ///   - items: What the forms are made from, such as the URLs of photos. A sequence without end will do.
    ///   - url: Where the forms go, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields of every request.
    ///   - concurrency: The most uploads at a time, 4 unless given: servers seldom take much more from one client.
    ///   - stopsAtFirstFailure: Whether one failure ends the others. Unless asked, it does not.
    ///   - progress: Told how far the batch is, often and in order, from whatever task; it should return at once.
    ///   - form: Makes the form of an item. What it throws is the outcome of that item.
    /// - Returns: The outcomes, in the order in which the uploads end. Nothing is sent before the first one is
    ///   asked for.
    public func uploadEach<Items: Sequence & Sendable>(
        _ items: Items, to url: URL, method: HTTPRequest.Method = .post, headerFields: HTTPFields = HTTPFields(),
        concurrency: Int = 4, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil,
        form: @escaping @Sendable (Items.Element) async throws -> MultipartForm
    ) -> UploadBatch where Items.Element: Sendable {
        let run = BatchRun(
            items, concurrency: concurrency, stopsAtFirstFailure: stopsAtFirstFailure, telling: progress
        ) { item in
            events(of: try await form(item), to: url, method: method, headerFields: headerFields)
        }
        return UploadBatch(run)
    }

    /// Sends forms, a few at a time.
    ///
    /// - Parameters:
    ///   - forms: The forms, taken one by one when there is room for them.
    ///   - url: Where the forms go, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields of every request.
    ///   - concurrency: The most uploads at a time, 4 unless given.
    ///   - stopsAtFirstFailure: Whether one failure ends the others. Unless asked, it does not.
    ///   - progress: Told how far the batch is, often and in order, from whatever task; it should return at once.
    /// - Returns: The outcomes, in the order in which the uploads end. Nothing is sent before the first one is
    ///   asked for.
    public func uploadEach(
        _ forms: some Sequence<MultipartForm> & Sendable, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), concurrency: Int = 4, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil
    ) -> UploadBatch {
        uploadEach(
            forms, to: url, method: method, headerFields: headerFields, concurrency: concurrency,
            stopsAtFirstFailure: stopsAtFirstFailure, progress: progress
        ) { $0 }
    }

    /// Sends endpoints' forms, a few at a time.
    ///
    /// ```swift
    /// let pets = photos.map { AddPet(name: "초코", photos: [$0]) }
    /// for await outcome in client.uploadEach(pets) {
    ///     let pet = try pets[outcome.index].decode(outcome.result.get())
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - endpoints: What is sent, and where; each makes its form when there is room for it.
    ///   - concurrency: The most uploads at a time, 4 unless given.
    ///   - stopsAtFirstFailure: Whether one failure ends the others. Unless asked, it does not.
    ///   - progress: Told how far the batch is, often and in order, from whatever task; it should return at once.
    /// - Returns: The outcomes, in the order in which the uploads end, with answers for ``UploadEndpoint/decode(_:)`` to
    ///   read. Nothing is sent before the first one is asked for.
    public func uploadEach<Endpoints: Sequence & Sendable>(
        _ endpoints: Endpoints, concurrency: Int = 4, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil
    ) -> UploadBatch where Endpoints.Element: UploadEndpoint {
        let run = BatchRun(
            endpoints, concurrency: concurrency, stopsAtFirstFailure: stopsAtFirstFailure, telling: progress
        ) { events(of: $0) }
        return UploadBatch(run)
    }
}
