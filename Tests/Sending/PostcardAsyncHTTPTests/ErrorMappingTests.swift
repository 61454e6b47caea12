import Foundation
import NIOCore
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
        let error = try #require(UploadError.mapping(Unheard(), of: url, afterSending: false) as? UploadError)
        #expect(error.code == .connectionLost)
        #expect(error.message.hasSuffix(": a thing nobody has heard of"))
        #expect(error.underlyingError is Unheard)
    }

    @Test func `an upload's own error, a form's and a cancellation pass unchanged`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        let own = UploadError.responseTooLarge(from: url, limit: 7)
        #expect((UploadError.mapping(own, of: url, afterSending: false) as? UploadError)?.code == .responseTooLarge)
        #expect(UploadError.mapping(CancellationError(), of: url, afterSending: false) is CancellationError)
        var form = MultipartForm()
        form.append(fileAt: URL(filePath: "/no/such/file"), named: "file")
        let missing = try #require(throws: FormError.self) { try form.layout() }
        #expect((UploadError.mapping(missing, of: url, afterSending: false) as? FormError)?.code == .fileMissing)
    }

    @Test(arguments: [ENETUNREACH, ENETDOWN, EHOSTUNREACH])
    func `without a network nothing was sent, unless it went away during the upload`(errno: CInt) throws {
        let url = try #require(URL(string: "http://example.org/"))
        let cause = IOError(errnoCode: errno, reason: "connect")
        let before = try #require(UploadError.mapping(cause, of: url, afterSending: false) as? UploadError)
        #expect(before.code == .connectionFailed && before.delivery == .neverArrived)
        let during = try #require(UploadError.mapping(cause, of: url, afterSending: true) as? UploadError)
        #expect(during.code == .connectionLost && during.delivery == .responseLost)
        #expect(during.underlyingError is IOError)
    }
}
