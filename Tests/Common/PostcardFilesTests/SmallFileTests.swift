import Foundation
import PostcardFiles
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SmallFileTests {
    @Test func `a file is read to its end, up to the limit and not a byte over it`() throws {
        let folder = try TemporaryFolder()
        let path = FilePath(try folder.file("a", [1, 2, 3]).path)
        #expect(try SmallFile.bytes(of: path, atMost: 3) == [1, 2, 3])
        #expect(throws: SmallFile.ReadError.self) { try SmallFile.bytes(of: path, atMost: 2) }
        #expect(try SmallFile.bytes(of: "/dev/null").isEmpty)
        #expect(try !SmallFile.bytes(of: "/proc/self/status").isEmpty)
    }

    @Test(arguments: [
        ("/dev/zero", "a device without an end"), ("/dev/urandom", "a device without an end"),
        ("/no/file", "cannot be read"), ("/usr", "cannot be read"),
    ])
    func `what is no small file is refused, and the error says why`(path: String, word: String) {
        let error = #expect(throws: SmallFile.ReadError.self) { try SmallFile.bytes(of: FilePath(path)) }
        #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }
}
