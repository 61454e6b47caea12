import Foundation
import PostcardClient
import PostcardForm
import Testing

@testable import PostcardAsyncHTTP

@Suite struct ErrorMappingTests {
    private struct Unheard: Error, CustomStringConvertible {
        var description: String { "a thing nobody has heard of" }
    }

    @Test func `an error of an unknown type loses the connection and says what it is`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        let error = try #require(UploadError.mapping(Unheard(), of: url) as? UploadError)
        #expect(error.code == .connectionLost)
        #expect(error.message.hasSuffix(": a thing nobody has heard of"))
        #expect(error.underlyingError is Unheard)
    }

    @Test func `an upload's own error, a form's and a cancellation pass unchanged`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        let own = UploadError.responseTooLarge(from: url, limit: 7)
        #expect((UploadError.mapping(own, of: url) as? UploadError)?.code == .responseTooLarge)
        #expect(UploadError.mapping(CancellationError(), of: url) is CancellationError)
        var form = MultipartForm()
        form.append(fileAt: URL(filePath: "/no/such/file"), named: "file")
        let missing = try #require(throws: FormError.self) { try form.layout() }
        #expect((UploadError.mapping(missing, of: url) as? FormError)?.code == .fileMissing)
    }
}
