import Foundation
import PostcardDoctor
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
import PostcardTestSupport
#endif

/// An uploader as the documentation's page about testing has it.
private struct PetUpload {
    var name: String
    var photo: Data

    func urlRequest() throws -> URLRequest {
        var request = URLRequest(url: URL(filePath: "/pets"))
        request.httpMethod = "POST"
        request.setValue("multipart/form-data; boundary=XX", forHTTPHeaderField: "Content-Type")
        var body = Data("--XX\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n\(name)\r\n".utf8)
        body += Data("--XX\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.jpg\"\r\n".utf8)
        body += Data("Content-Type: image/jpeg\r\n\r\n".utf8) + photo + Data("\r\n--XX--\r\n".utf8)
        request.httpBody = body
        return request
    }
}

@Suite("The page about testing an uploader")
struct TestingAnUploaderTests {
    private let photo = Data([0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x02, 0xFF, 0xD9])

    @Test func `an upload is well-formed`() throws {
        let request = try PetUpload(name: "초코", photo: photo).urlRequest()
        let body = try #require(request.httpBody)
        let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: body)
        #expect(explanation.isWellFormed)
    }

    @Test func `a problem is named by its code`() throws {
        let request = try PetUpload(name: "초코", photo: photo).urlRequest()
        let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: try #require(request.httpBody))
        #expect(!explanation.problems.contains { $0.code == .misspelledMediaType })
    }

    @Test
    func `shows what is compiled here`() throws {
        let test = URL(filePath: #filePath)
        let page = Repository.sources(of: "PostcardDoctor").appending(path: "PostcardDoctor.docc/TestingAnUploader.md")
        let compiled = Self.lines(try String(contentsOf: test, encoding: .utf8))
        let blocks = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
        #expect(blocks.count == 2)
        for block in blocks {
            let code = Self.lines(block.components(separatedBy: "\n```")[0])
            #expect(compiled.indices.contains { compiled[$0...].starts(with: code) }, "\(code.first ?? "")")
        }
    }

    private static func lines(_ text: String) -> [String] {
        text.components(separatedBy: "\n").map { String($0.drop { $0 == " " }) }
    }
}
