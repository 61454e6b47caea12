import PostcardForm
public import PostcardReception

/// What a receiver of the check accepts: `PROGRAM PORT FOLDER NAME`, with one of the names below.
public struct Settings: Sendable {
    public let port: Int
    public let folder: String
    public var options = UploadOptions()
    /// The tokens of which a request needs one.
    public var tokens: Set<String>?
    public var timeouts = FormReceiver.Timeouts()

    public init?(_ arguments: [String]) {
        guard arguments.count == 4, let port = Int(arguments[1]), let name = Name(rawValue: arguments[3]) else {
            return nil
        }
        self.port = port
        folder = arguments[2]
        // One client sends all the requests.
        options.clientShare = 1
        switch name {
        case .plain: break
        case .limits:
            options.limits.maximumBodyBytes = 200_000
            options.limits.maximumFileBytes = 100_000
            options.limits.maximumFieldBytes = 1000
            options.limits.maximumParts = 5
            options.maximumRecordBytes = 2000
        case .rules:
            options.rules = try? FormRules(
                fields: ["name": FormRules.Field(atLeast: 1, maximumCharacters: 10)],
                files: ["photo": FormRules.File(atMost: 2, maximumBytes: 50_000, types: [.jpeg, .png])])
        case .any: options.acceptsAnyBody = true
        case .tokens: tokens = ["sesame"]
        case .slow:
            timeouts.idle = .seconds(1)
            timeouts.minimumBytesPerSecond = 20_000
            timeouts.gracePeriod = .seconds(2)
        case .whole: options.resumption = nil
        case .large:
            options.limits.maximumBodyBytes = 4 << 30
            options.limits.maximumFileBytes = 4 << 30
        }
    }

    private enum Name: String {
        case plain, limits, rules, any, tokens, slow, whole, large
    }
}
