import Foundation
import Testing

@testable import PostcardS3

/// The examples in the reference of Amazon S3 and in the test suite of Signature Version 4.
struct RequestSignerTests {
    private static let documented = RequestSigner(
        credentials: S3Credentials(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1")
    private static let suite = RequestSigner(
        credentials: S3Credentials(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1", service: "service")
    private static let documentedDate = Date(timeIntervalSince1970: 1_369_353_600)
    private static let suiteDate = Date(timeIntervalSince1970: 1_440_938_160)

    private func signature(_ request: SignableRequest) -> Substring? {
        request.headers.last?.value.split(separator: "Signature=").last
    }

    struct Example: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let request: SignableRequest
        var body = ""
        let signature: String
    }

    @Test(arguments: [
        Example(
            testDescription: "GET with a range",
            request: SignableRequest(
                method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/test.txt",
                headers: [("Range", "bytes=0-9")]),
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            testDescription: "PUT",
            request: SignableRequest(
                method: "PUT", host: "examplebucket.s3.amazonaws.com", path: "/test$file.text",
                headers: [
                    ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ]), body: "Welcome to Amazon S3.",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            testDescription: "a parameter without a value",
            request: SignableRequest(
                method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/", query: [("lifecycle", "")]),
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            testDescription: "a listing",
            request: SignableRequest(
                method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/",
                query: [("max-keys", "2"), ("prefix", "J")]),
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ])
    func `requests have the signatures of the documentation`(example: Example) {
        var request = example.request
        Self.documented.sign(
            &request, payloadHash: RequestSigner.hash(Array(example.body.utf8)), at: Self.documentedDate)
        #expect(signature(request) == Substring(example.signature))
    }

    @Test(arguments: [
        Example(
            testDescription: "get-vanilla",
            request: SignableRequest(method: "GET", host: "example.amazonaws.com", path: "/"),
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Example(
            testDescription: "post-vanilla",
            request: SignableRequest(method: "POST", host: "example.amazonaws.com", path: "/"),
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Example(
            testDescription: "get-vanilla-query-order-key-case",
            request: SignableRequest(
                method: "GET", host: "example.amazonaws.com", path: "/",
                query: [("Param2", "value2"), ("Param1", "value1")]),
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Example(
            testDescription: "get-header-value-trim",
            request: SignableRequest(
                method: "GET", host: "example.amazonaws.com", path: "/",
                headers: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")]),
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    ])
    func `requests have the signatures of the test suite`(example: Example) {
        var request = example.request
        Self.suite.addAuthorization(to: &request, payloadHash: RequestSigner.emptyHash, at: Self.suiteDate)
        #expect(signature(request) == Substring(example.signature))
    }

    @Test func `a presigned request has the signature of the documentation`() {
        var request = SignableRequest(method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/test.txt")
        Self.documented.presign(&request, lifetime: 86400, at: Self.documentedDate)
        #expect(
            request.query.last?.value == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
        #expect(request.encodedQuery.contains("X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"))
    }

    @Test func `a POST policy has the signature of the documentation`() {
        let lines = [
            #"{ "expiration": "2015-12-30T12:00:00.000Z","#, #"  "conditions": ["#,
            #"    {"bucket": "sigv4examplebucket"},"#, #"    ["starts-with", "$key", "user/user1/"],"#,
            #"    {"acl": "public-read"},"#,
            #"    {"success_action_redirect": "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"},"#,
            #"    ["starts-with", "$Content-Type", "image/"],"#, #"    {"x-amz-meta-uuid": "14365123651274"},"#,
            #"    {"x-amz-server-side-encryption": "AES256"},"#, #"    ["starts-with", "$x-amz-meta-tag", ""],"#, "",
            #"    {"x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"},"#,
            #"    {"x-amz-algorithm": "AWS4-HMAC-SHA256"},"#, #"    {"x-amz-date": "20151229T000000Z" }"#, "  ]", "}",
        ]
        let policy = Data(lines.joined(separator: "\r\n").utf8).base64EncodedString()
        #expect(
            Self.documented.signature(ofPolicy: policy, at: Date(timeIntervalSince1970: 1_451_347_200))
                == "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e")
    }

    @Test func `a session's token is signed`() {
        let signer = RequestSigner(
            credentials: S3Credentials(accessKeyID: "A", secretAccessKey: "B", sessionToken: "C"), region: "x")
        var request = SignableRequest(method: "GET", host: "h", path: "/")
        signer.sign(&request, payloadHash: RequestSigner.emptyHash, at: Self.suiteDate)
        let signed = "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
        #expect(request.headers.last?.value.contains(signed) == true)
    }
}
