import Foundation
import HTTPTypes
import NIOCore
import PostcardWire

/// The uploads of a server that keeps to the draft, but for one mistake.
final class ModelUploads {
    static let maximumBytes: Int64 = 50_000_000
    static let lifetime = 3600

    let deviation: Deviation?
    private let origin: String
    private var uploads: [String: Upload] = [:]
    private var count = 0

    /// An upload resource.
    final class Upload {
        let path: String
        let contentType: String
        var bytes: [UInt8] = []
        var length: Int64?
        var isComplete = false
        var isGone = false
        private let created = ContinuousClock.now
        /// The connection of the request that appends.
        var owner: (any Channel)?

        init(_ path: String, _ fields: HTTPFields) {
            self.path = path
            contentType = fields[.contentType] ?? ""
        }

        /// The seconds until it is removed.
        var lifetime: Int { ModelUploads.lifetime - Int((ContinuousClock.now - created) / .seconds(1)) }
    }

    /// A response.
    struct Response {
        var status: Int
        var fields: [(String, String)] = []
        var body = ""

        func with(_ name: String, _ value: String) -> Response {
            var response = self
            response.fields.append((name, value))
            return response
        }
    }

    /// - Parameter origin: What comes before the paths in `Location`.
    init(_ deviation: Deviation?, at origin: String) {
        self.deviation = deviation
        self.origin = origin
    }

    func create(_ fields: HTTPFields) -> Upload {
        count += 1
        var path = "/uploads/\(UUID().uuidString)"
        if deviation == .numbersUploads { path = "/uploads/\(count)" }
        if deviation == .reusesUpload { path = "/uploads/abcdefghijk" }
        let upload = Upload(path, fields)
        uploads[path] = upload
        return upload
    }

    func find(_ path: String) -> Upload? {
        uploads[path].flatMap { $0.isGone ? nil : $0 }
    }

    // MARK: - Fields

    func location(_ upload: Upload) -> String { origin + upload.path }

    /// - Parameter upload: The upload; `nil` for one that is created now.
    func limits(of upload: Upload? = nil) -> String {
        deviation == .hasUnreadableLimits
            ? "max-size=1000000000000000"
            : "max-size=\(Self.maximumBytes), min-size=0, max-age=\(upload?.lifetime ?? Self.lifetime)"
    }

    /// The version of the draft in a request, if the server knows it.
    static func version(of fields: HTTPFields) -> String? {
        fields[.uploadDraftInteropVersion].flatMap { ["8", "9"].contains($0) ? $0 : nil }
    }

    func completeness(_ fields: HTTPFields) -> Bool? {
        let text = fields[.uploadComplete] ?? ""
        if deviation == .readsCompletenessLeniently, text == "1" || text == "true" { return true }
        return fields.uploadCompleteness(in: .newest)
    }

    func offset(_ fields: HTTPFields) -> Int64? {
        guard deviation == .readsOffsetLeniently else { return fields.uploadOffset }
        return fields[.uploadOffset].flatMap { Int64($0.prefix(while: \.isNumber)) }
    }

    // MARK: - Responses

    var options: Response {
        let response = Response(status: 204)
        return deviation == .omitsLimitsOfOptions ? response : response.with("Upload-Limit", limits())
    }

    func created(_ upload: Upload) -> Response {
        var response = Response(status: deviation == .createsAsOK ? 200 : 201).with("Upload-Limit", limits(of: upload))
        if deviation != .omitsOriginOfCreations { response = response.with("Upload-Complete", "?0") }
        if deviation != .omitsLocation { response = response.with("Location", location(upload)) }
        return response
    }

    func head(_ upload: Upload) -> Response {
        if deviation == .redirects { return Response(status: 302).with("Location", upload.path + "x") }
        var response = Response(status: 204)
        if deviation != .omitsOffset { response = response.with("Upload-Offset", "\(upload.bytes.count)") }
        if deviation != .omitsCompleteness {
            response = response.with("Upload-Complete", upload.isComplete ? "?1" : "?0")
        }
        if deviation != .omitsLength, let length = upload.isComplete ? Int64(upload.bytes.count) : upload.length {
            response = response.with("Upload-Length", "\(length)")
        }
        if deviation == .narrowsLimits {
            response = response.with("Upload-Limit", "max-size=1000000")
        } else if deviation != .omitsLimits {
            response = response.with("Upload-Limit", limits(of: upload))
        }
        return deviation == .isCacheable ? response : response.with("Cache-Control", "max-age=0, no-store")
    }

    func conflict(_ upload: Upload, provided: Int64) -> Response {
        var response = Response(status: deviation == .refusesConflictsAsBad ? 400 : 409)
        if deviation != .conflictsWithoutOffset { response = response.with("Upload-Offset", "\(upload.bytes.count)") }
        response = response.with("Upload-Complete", deviation == .saysCompleteInConflicts ? "?1" : "?0")
        let shift = deviation == .hasWrongProblemMembers ? 1 : 0
        return problem(
            response, "mismatching-upload-offset",
            #", "expected-offset": \#(upload.bytes.count + shift), "provided-offset": \#(provided + Int64(shift))"#)
    }

    func inconsistentLength() -> Response { problem(Response(status: 400), "inconsistent-upload-length") }

    func tooLarge(_ upload: Upload? = nil) -> Response {
        let limits = limits(of: deviation == .hasLimitsOfNewUploads ? nil : upload)
        return deviation == .omitsLimitsOfRefusals
            ? Response(status: 413) : Response(status: 413).with("Upload-Limit", limits)
    }

    private func problem(_ response: Response, _ type: String, _ members: String = "") -> Response {
        var response = response.with("Content-Type", "application/problem+json")
        response.body = #"{"type": "https://iana.org/assignments/http-problem-types#\#(type)"\#(members)}"#
        return response
    }

    /// What the resource makes of a whole representation.
    func process(_ upload: Upload, isAppend: Bool) -> Response {
        var response = Response(status: 201, body: "{}").with("Content-Type", "application/json")
        if upload.contentType.hasPrefix("multipart/"), !upload.bytes.suffix(4).elementsEqual("--\r\n".utf8) {
            response.status = 422
        }
        if isAppend, deviation == .respondsOtherwiseAfterAppends { response.status = 299 }
        let isOmitted =
            deviation == .omitsCompletion || deviation == .omitsCompletionOfRefusals && response.status >= 400
        return isOmitted ? response : response.with("Upload-Complete", "?1")
    }
}
