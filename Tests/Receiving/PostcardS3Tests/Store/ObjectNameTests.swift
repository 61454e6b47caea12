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

    @Test func `a message does not say how an unfinished upload is named`() throws {
        let bucket = try S3Bucket("s3://bucket/some/path")
        let addresses = ["unfinished/01abc/chunks/0001", "unfinished/01abc", "records/01abc"].map { key in
            bucket.address(of: bucket.prefix + key)
        }
        #expect(
            addresses == [
                "s3://bucket/some/path/unfinished/…/chunks/0001", "s3://bucket/some/path/unfinished/…",
                "s3://bucket/some/path/records/01abc",
            ])
    }
}
