import HTTPTypes
package import PostcardWire

/// An operating system that resumes uploads of files by itself. Its checks make the requests that were seen from it.
package enum UploadingSystem: String, Sendable, CaseIterable {
    case ios17
    case ios18 = "ios18.0"
    case ios18p1 = "ios18.1"
    case ios26 = "ios26.2"

    /// The version of the resumable upload draft in the system's requests.
    package var version: ResumptionVersion {
        switch self {
        case .ios17: .interop3
        case .ios18: .interop5
        case .ios18p1: .interop6
        case .ios26: .interop8
        }
    }

    package var name: String { "iOS " + rawValue.dropFirst(3) }

    /// The system's request to upload a file. The system resumes the upload if a 104 has named a resource.
    private var upload: Step {
        let step = Step.create(.all, isComplete: true)
        return self == .ios26 ? step.with("Upload-Length", "{all}") : step
    }

    /// The checks of what the system requires of a server, in the order of its requests.
    package var checks: [ConformanceCheck] {
        let cut = upload.cut(at: .half).announced
        let rest = Step.append(.seen, .all, isComplete: true)
        return [
            ConformanceCheck(
                1201, "4.2.2", .must, "Without a 104 before the end of the content, \(name) MUST send all of it again.",
                upload.paused().expecting(.processed, .announcement)),
            ConformanceCheck(
                1202, "B", .must, "\(name) MUST ignore a 104 without its version in Upload-Draft-Interop-Version.",
                upload.paused().expecting(.whenAnnounced, .versionInAnnouncements)),
            ConformanceCheck(
                1203, "4.2.2", .must, "The 104 MUST have a Location, where \(name) resumes.",
                upload.paused().expecting(
                    .whenAnnounced, .firstAnnouncement("a Location in the 104") { $0.fields.contains(.location) })),
            ConformanceCheck(
                1204, "4.3.2", .must, "After an interruption HEAD MUST have the Upload-Offset, where \(name) goes on.",
                cut, .head.repeated.expecting(.success, .offset(.half))),
            ConformanceCheck(
                1205, "4.3.2", .must, "HEAD MUST NOT say that the interrupted upload is complete.",
                cut, .head.repeated.expecting(.success, .notComplete)),
            ConformanceCheck(
                1206, "4.4.2", .must, "The PATCH with the rest MUST have the response of an upload in one request.",
                cut, .head, rest.expecting(.conventionalStatus)),
        ]
    }
}
