import PostcardServer
import Testing

@testable import PostcardS3

struct ObjectNameTests {
    @Test func `records of later identifiers have names that sort first`() throws {
        let older = try #require(UploadID("01j00000000000000000000000"))
        let newer = try #require(UploadID("01j0000001zzzzzzzzzzzzzzzz"))
        #expect(ObjectName.record(newer) < ObjectName.record(older))
        #expect(ObjectName.id(ofRecord: ObjectName.record(newer)) == newer)
        #expect(ObjectName.id(ofRecord: "records/other") == nil)
        #expect(ObjectName.randomText(ofFile: ObjectName.file(3, of: newer)) == newer.randomText)
        #expect(ObjectName.generation(ofKey: ObjectName.key("digest", generation: 12)) == 12)
    }
}
