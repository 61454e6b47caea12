import Foundation
import Testing

@testable import PostcardS3

struct ObjectNotificationTests {
    @Test(arguments: [
        ("a/b.jpg", "a/b.jpg"), ("a+b%2Bc", "a b+c"), ("%EC%B4%88%EC%BD%94", "초코"), ("100%", "100%"),
        ("%zz%4", "%zz%4"),
        ("%+1", "% 1"), ("", ""),
    ])
    func `the keys of events are decoded, with a plus for a blank`(text: String, key: String) {
        #expect(ObjectNotification.decoded(text) == key)
    }

    @Test(arguments: [
        ("ObjectCreated:Put", true), ("ObjectCreated:Post", true), ("s3:ObjectCreated:CompleteMultipartUpload", true),
        ("ObjectRemoved:Delete", false), ("s3:TestEvent", false),
    ])
    func `only what was stored counts`(name: String, isCreation: Bool) throws {
        let json = """
            {"Records":[{"eventVersion":"2.1","eventName":"\(name)","s3":{"bucket":{"name":"b","arn":"x"},
            "object":{"key":"a+b","size":3,"eTag":"1f","sequencer":"0"}}}]}
            """
        let records = try JSONDecoder().decode(ObjectNotification.self, from: Data(json.utf8)).records
        let record = try #require(records?.first)
        #expect(record.isCreation == isCreation)
        #expect(record.key == "a b")
        #expect(record.s3.object.size == 3 && record.s3.object.eTag == "1f")
    }
}
