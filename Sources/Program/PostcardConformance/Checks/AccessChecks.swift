import HTTPTypes

extension ConformanceSuite {
    private static let guessing =
        "it is RECOMMENDED to generate upload resource URIs in such a way that makes it hard to be guessed by "
        + "unauthorized clients"
    private static let authorization =
        "the server SHOULD ensure that only authorized clients can access the upload resource"

    /// Security considerations (§13): 1101 and on.
    static let accessChecks: [ConformanceCheck] = [
        ConformanceCheck(1101, "13", .should, guessing) { session in
            var targets: [String] = []
            for _ in 0..<2 {
                try await session.succeed(.create(.none))
                guard let upload = session.upload else { throw session.missingUpload }
                targets.append(upload.target)
            }
            let difference = zip(targets[0], targets[1]).count { $0 != $1 }
            // Of 16 random hexadecimal digits, 15 differ on average.
            return CheckFinding(
                difference >= 10 ? .ok : .violated,
                "\(targets[0]) and \(targets[1]) differ in \(difference) characters")
        },
        ConformanceCheck(
            1102, "13", .should, guessing, .create(.half), .headOfUnknown.expecting(.refusal)),
        unauthorized(1111, .head),
        unauthorized(1112, .append(.half, .most)),
        unauthorized(1113, .delete),
        unauthorized(1114, .append(.half, .all, isComplete: true)),
    ]

    private static func unauthorized(_ number: Int, _ step: Step) -> ConformanceCheck {
        ConformanceCheck(number, "13", .should, authorization) { session in
            let fields = session.settings.headerFields
            guard fields.contains(.authorization) || fields.contains(.cookie) else {
                throw CheckInterruption.notApplicable("the requests name no client")
            }
            return try await session.judge([.create(.half), step.anonymous.expecting(.refusal)])
        }
    }
}
