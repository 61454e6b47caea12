import Foundation
import HTTPTypes
import PostcardClient
import PostcardTestSupport
import Testing

@testable import PostcardQueue

@Suite struct UploadQueueErrorTests {
    private let catalog: StringCatalog

    init() throws {
        catalog = try StringCatalog(of: "PostcardQueue")
    }

    @Test func `every text is in English and Korean, with the same placeholders`() {
        #expect(catalog.sourceLanguage == "en")
        #expect(catalog.keys.flatMap(catalog.mistakes) == [])
    }

    @Test func `every code has a text and advice, and there are no other texts`() throws {
        let codes = try StringCatalog.codes(in: "Model/UploadQueueError.swift", of: "PostcardQueue")
        #expect(codes.count >= 11)
        let errors = codes.map { UploadQueueError(UploadQueueError.Code(rawValue: $0), "in English") }
        let failureCodes = try StringCatalog.codes(in: "Model/UploadFailure.swift", of: "PostcardQueue")
        #expect(failureCodes.count >= 8)
        let failures = failureCodes.map { QueuedUpload.Failure(UploadError.Code(rawValue: $0), "in English") }
        let keys =
            errors.flatMap { [$0.localizedMessage.key, $0.localizedAdvice.key] }
            + failures.flatMap { [$0.localizedMessage?.key, $0.localizedAdvice?.key].compactMap(\.self) }
        #expect(keys.sorted() == catalog.keys)
    }

    /// A failure that was stored has the sentences of the client's error.
    @Test func `a failure of the client has the client's text and advice`() throws {
        let failure = QueuedUpload.Failure(
            .refused, "in English", response: .init(status: 413, headerFields: [:], body: Data()))
        #expect(failure.localizedMessage == nil && failure.localizedAdvice == nil)
        #expect(failure.errorDescription == "in English")
        #expect(failure.recoverySuggestion?.contains("larger than the server") == true)
    }

    #if os(Linux)
    @Test func `without a catalog, the message and the advice are in English`() {
        let error = UploadQueueError(.full, "in English", advice: "also in English")
        #expect(error.errorDescription == "in English")
        #expect(error.recoverySuggestion == "also in English")
    }
    #endif
}
