import Foundation
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
        let codes = try StringCatalog.codes(in: "PostcardQueue/Errors/UploadQueueError.swift")
        #expect(codes.count >= 9)
        let errors = codes.map { UploadQueueError(UploadQueueError.Code(rawValue: $0), "in English") }
        let keys = errors.flatMap { [$0.localizedMessage.key, $0.localizedAdvice.key] }
        #expect(keys.sorted() == catalog.keys)
    }

    #if os(Linux)
    @Test func `without a catalog, the message and the advice are in English`() {
        let error = UploadQueueError(.full, "in English", advice: "also in English")
        #expect(error.errorDescription == "in English")
        #expect(error.recoverySuggestion == "also in English")
    }
    #endif
}
