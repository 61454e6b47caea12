import PostcardWire
import Testing

/// A mistake of the model server.
enum Deviation: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case announcesWithoutVersion
    case announcesToAnyone
    case announcesWithoutLocation
    case announcesNothing
    case announcesLocationInAppends
    case progressFalls
    case omitsContinue
    case omitsOffset
    case omitsCompleteness
    case omitsLength
    case omitsLimits
    case isCacheable
    case redirects
    case truncates
    case appendsAnywhere
    case conflictsWithoutOffset
    case refusesConflictsAsBad
    case saysCompleteInConflicts
    case omitsCompletion
    case omitsCompletionOfRefusals
    case respondsOtherwiseAfterAppends
    case omitsLocation
    case createsAsOK
    case ignoresLengths
    case exceedsLengths
    case keepsExceeded
    case readsOffsetLeniently
    case readsCompletenessLeniently
    case dropsCutContent
    case completesCutUploads
    case keepsDeleted
    case appendsToComplete
    case omitsLimitsOfOptions
    case omitsLimitsOfRefusals
    case hasUnreadableLimits
    case narrowsLimits
    case numbersUploads
    case reusesUpload
    case keepsRequestsInFlight
    case hasWrongProblemMembers
    case appendsAnyType
    case omitsOriginOfCreations
    case hasLimitsOfNewUploads

    var testDescription: String { rawValue }

    /// The version of the requests that find it: those of version 9 need not have some fields any more.
    var version: ResumptionVersion {
        switch self {
        case .omitsCompleteness, .omitsLength: .interop8
        default: .latestNumbered
        }
    }

    /// The checks that find it, among others.
    var checks: [Int] {
        switch self {
        case .announcesWithoutVersion: [821, 822]
        case .announcesToAnyone: [811, 812, 813, 814, 815, 816, 817, 818]
        case .announcesWithoutLocation: [803]
        case .announcesNothing: [801, 802]
        case .announcesLocationInAppends: [832]
        case .progressFalls: [833]
        case .omitsContinue: [807]
        case .omitsOffset: [501, 502, 503, 504, 505, 506, 561, 562]
        case .omitsCompleteness: [511, 512, 513, 514, 515]
        case .omitsLength: [521, 522, 523, 524, 525, 411, 412, 606, 607, 608]
        case .omitsLimits: [531, 532, 563, 564]
        case .isCacheable: [541, 542]
        case .redirects: [551, 552]
        case .truncates: [202, 203, 662, 663]
        case .appendsAnywhere: [661, 664, 666, 668, 676, 677]
        case .conflictsWithoutOffset: [671, 672, 673, 674, 675]
        case .refusesConflictsAsBad: [661, 662, 663, 664, 665]
        case .saysCompleteInConflicts: [678, 680, 693]
        case .omitsCompletion: [621, 622, 623, 624]
        case .omitsCompletionOfRefusals: [625, 626]
        case .respondsOtherwiseAfterAppends: [427, 631, 632, 633]
        case .omitsLocation: [401, 402, 403, 404]
        case .createsAsOK: [407]
        case .ignoresLengths: [261, 262, 263, 264, 265, 266]
        case .exceedsLengths: [701, 702, 703, 705]
        case .keepsExceeded: [707]
        case .readsOffsetLeniently: [212, 216, 219]
        case .readsCompletenessLeniently: [231, 232]
        case .dropsCutContent: [431, 641, 642]
        case .completesCutUploads: [433, 435, 644, 645]
        case .keepsDeleted: [723, 724, 725, 726]
        case .appendsToComplete: [245, 686]
        case .omitsLimitsOfOptions: [313]
        case .omitsLimitsOfRefusals: [331, 332, 333, 334, 335]
        case .hasUnreadableLimits: [301, 302, 303]
        case .narrowsLimits: [314, 321, 322]
        case .numbersUploads: [1101]
        case .reusesUpload: [103, 104, 105]
        case .keepsRequestsInFlight: [734, 771, 772, 756]
        case .hasWrongProblemMembers: [911, 912]
        case .appendsAnyType: [711, 712]
        case .omitsOriginOfCreations: [441]
        case .hasLimitsOfNewUploads: [340]
        }
    }
}
