import Foundation
import PostcardDoctor
import PostcardForm

// Forms for an object store, and the policies that were signed for them.
extension BrokenRequest {
    private static let conditions = [
        #"{"bucket":"pets"}"#, #"["starts-with","$key","photos/"]"#, #"["starts-with","$Content-Type","image/"]"#,
        #"["content-length-range",1,1000]"#, #"{"x-amz-date":"20260101T000000Z"}"#,
    ]

    private static func policy(
        _ further: [String] = [], expiration: String = "2099-01-01T00:00:00Z", without: String? = nil
    ) -> String {
        let conditions = (Self.conditions + further).filter { condition in
            without.map { !condition.contains($0) } ?? true
        }
        let json = #"{"expiration":"\#(expiration)","conditions":[\#(conditions.joined(separator: ","))]}"#
        return Data(json.utf8).base64EncodedString()
    }

    /// A form with its policy: the fields before the file, and those after it.
    static func storeForm(
        _ fields: [(String, String)] = [("key", "photos/${filename}"), ("Content-Type", "image/jpeg")],
        policy: String? = nil, behind: [(String, String)] = []
    ) -> SampleRequest {
        let signed = [
            ("policy", policy ?? Self.policy()), ("x-amz-date", "20260101T000000Z"), ("x-amz-signature", "a1b2"),
            ("x-ignore-note", "초코"),
        ]
        var parts = (fields + signed).map { SampleRequest.Part.field($0.0, $0.1) }
        parts.append(.file("file", "sea.jpg", "image/jpeg", Picture.jpeg))
        parts += behind.map { SampleRequest.Part.field($0.0, $0.1) }
        return SampleRequest(parts)
    }

    private static let good = storeForm()

    static let policies: [BrokenRequest] = [
        .init("a policy that is not Base64", good, .malformedPolicy, at: .body("{}"), part: 2) {
            $0 = storeForm(policy: "{}")
        },
        .init("a policy without conditions", good, .malformedPolicy, at: .body("e30="), part: 2) {
            $0 = storeForm(policy: "e30=")
        },
        .init("a policy that has ended", good, .expiredPolicy, at: .body("\"policy\"", plus: 12), part: 2) {
            $0 = storeForm(policy: policy(expiration: "2015-12-30T12:00:00.000Z"))
        },
        .init("a long policy that has ended", good, .expiredPolicy, at: .body("\"policy\"", plus: 12), part: 2) {
            let further = [String](repeating: #"["starts-with","$key","photos/"]"#, count: 300)
            $0 = storeForm(policy: policy(further, expiration: "2015-12-30T12:00:00.000Z"))
        },
        .init("no Content-Type", good, .missingPolicyField, at: .body("\"policy\"", plus: 12), part: 1) {
            $0 = storeForm([("key", "photos/1")])
        },
        .init(
            "a field missing that may be anything", good, .missingPolicyField, at: .body("\"policy\"", plus: 12),
            part: 2
        ) {
            $0 = storeForm(policy: policy([#"["starts-with","$x-amz-meta-pet",""]"#]))
        },
        .init("another type", good, .policyMismatch, at: .body("video/mp4"), part: 1) {
            $0 = storeForm([("key", "photos/1"), ("Content-Type", "video/mp4")])
        },
        .init("a key in another folder", good, .policyMismatch, at: .body("pets/1"), part: 0) {
            $0 = storeForm([("key", "pets/1"), ("content-type", "image/jpeg")])
        },
        .init("a field that no condition names", good, .fieldOutsidePolicy, at: .body("Jeju"), part: 1) {
            $0 = storeForm([("key", "photos/1"), ("title", "Jeju"), ("Content-Type", "image/jpeg")])
        },
        .init("a file that is too large", good, .sizeOutsidePolicy, at: .bytes([0xFF, 0xD8]), part: 6) {
            $0 = storeForm(policy: policy([#"["content-length-range",1,2]"#], without: "1000"))
        },
        .init("a field behind the file", good, .fieldsAfterFile, at: .body("behind\"", plus: 11), part: 7) {
            $0 = storeForm(behind: [("behind", "the file")])
        },
    ]
}
