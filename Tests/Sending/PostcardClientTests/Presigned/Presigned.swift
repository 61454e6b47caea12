import Foundation
import PostcardClient

/// Presigned forms as servers make them. The signatures are not right: no server of these tests checks them.
enum Presigned {
    static let later = "2099-01-01T00:00:00Z"
    static let earlier = "2001-01-01T00:00:00.000Z"

    /// What the SDKs sign besides the caller's conditions.
    static let usual = [#"{"bucket":"pets"}"#, #"{"key":"photos/1"}"#, #"{"x-amz-date":"20260101T000000Z"}"#]

    static func fields(_ conditions: [String], expiration: String = later) -> [String: String] {
        let policy = #"{"expiration":"\#(expiration)","conditions":[\#((usual + conditions).joined(separator: ","))]}"#
        return [
            "key": "photos/1", "x-amz-date": "20260101T000000Z", "policy": Data(policy.utf8).base64EncodedString(),
            "x-amz-signature": "a1b2",
        ]
    }

    static func form(
        to url: URL, _ conditions: [String] = [], expiration: String = later, adding fields: [String: String] = [:]
    ) -> PresignedForm {
        PresignedForm(
            url: url, fields: self.fields(conditions, expiration: expiration).merging(fields) { $1 })
    }

    /// The names and contents of a form's parts, as they were received.
    static func parts(_ body: [UInt8], contentType: String) -> [(header: String, content: String)] {
        let boundary = contentType.split(separator: "boundary=").last.map(String.init) ?? ""
        let text = String(decoding: body, as: UTF8.self)
        return text.components(separatedBy: "--\(boundary)").dropFirst().dropLast().map { part in
            let halves = part.components(separatedBy: "\r\n\r\n")
            let content = halves.dropFirst().joined(separator: "\r\n\r\n")
            return (halves[0], content.hasSuffix("\r\n") ? String(content.dropLast()) : content)
        }
    }
}
