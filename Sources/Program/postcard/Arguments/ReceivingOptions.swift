public import ArgumentParser
import Foundation
import PostcardForm
import PostcardReceiver
public import PostcardServer

extension UnfinishedUploadOptions.InterimResponses: ExpressibleByArgument {}

/// The options for the forms that `serve` accepts, and for its speed.
struct ReceivingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The maximum size of a body, such as 100MB (\(Shown.size(FormLimits().maximumBodyBytes))).",
            valueName: "size"))
    var maxBody: ByteCount?

    @Option(help: ArgumentHelp("The maximum size of a file, such as 20MB (that of the body).", valueName: "size"))
    var maxFile: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The maximum size of a text field, such as 64KB (\(Shown.size(FormLimits().maximumFieldBytes))).",
            valueName: "size"))
    var maxField: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The maximum number of forms received at the same time (\(UploadOptions().maximumConcurrentUploads)).",
            valueName: "count"))
    var maxUploads: Int?

    @Option(
        help: ArgumentHelp(
            "The maximum number of connections at the same time. Defaults to half the limit of open files; a number that leaves too few files is lowered.",
            valueName: "count"))
    var maxConnections: Int?

    @Option(
        help: ArgumentHelp(
            "The share of what is free, of connections, requests, forms, text, unfinished uploads and unread responses, "
                + "that one address can have (\(Int(UploadOptions().clientShare * 100))). Behind a proxy, also use --trust-proxy.",
            valueName: "percent"))
    var clientShare: Double?

    @Option(
        help: ArgumentHelp(
            "The free space to leave on the disk, such as 1GB (\(Shown.size(Receiver(directory: "").keptFreeBytes))).",
            valueName: "size"))
    var keepFree: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The minimum rate of a body, in bytes per second, such as 1KB (\(ConnectionOptions().minimumBytesPerSecond)).",
            valueName: "size"))
    var minimumRate: ByteCount?

    @Option(
        help: ArgumentHelp(
            "How long a body may be slower than the minimum rate (\(Shown.seconds(ConnectionOptions().gracePeriod))).",
            valueName: "seconds"))
    var grace: Double?

    @Option(
        help: ArgumentHelp(
            "How long a connection is kept between two requests (\(Shown.seconds(ConnectionOptions().keepAliveTimeout))).",
            valueName: "seconds"))
    var keepAliveTimeout: Double?

    @Option(
        help: ArgumentHelp(
            "How long a sender may be idle (\(Shown.seconds(ConnectionOptions().idleTimeout))).", valueName: "seconds"))
    var idleTimeout: Double?

    @Flag(
        inversion: .prefixedNo, exclusivity: .exclusive,
        help: "Let senders resume interrupted uploads (draft-ietf-httpbis-resumable-upload).")
    var resume = true

    @Option(
        help: ArgumentHelp(
            "How long an interrupted upload is kept (\(Shown.seconds(UnfinishedUploadOptions().lifetime)), a day).",
            valueName: "seconds"))
    var uploadExpiry: Double?

    @Option(
        help: ArgumentHelp(
            "Interim responses (104) to resumable uploads: auto, for clients that support them, or never, for proxies that "
                + "take one for the final response (auto).",
            valueName: "auto|never"))
    var interimResponses: UnfinishedUploadOptions.InterimResponses?

    @Option(
        help: ArgumentHelp(
            "The origin before the path in the Location of a resumable upload, such as https://example.org, for clients that "
                + "do not resolve a relative one. Defaults to none: only the path is sent.",
            valueName: "url"))
    var locationOrigin: String?

    @Flag(
        help: ArgumentHelp(
            "Accept bodies that are no forms too, each as a record with one file in the field 'file'.",
            discussion: """
                The file is named by Content-Disposition, or by the last part of the path: POST and PUT also work below \
                --path.
                """))
    var anyBody = false

    @Option(
        help: ArgumentHelp(
            "A JSON file with the allowed fields and files.",
            discussion: """
                Such as {"fields": {"name": {"atLeast": 1, "maximumCharacters": 80}}, "files": {"petImage": {"atMost": \
                5, "maximumBytes": "5MB", "types": ["image/*"]}}}. Other parts are refused, unless "otherParts" is \
                "allowed", and each name may be sent once, unless its "atMost" says more. Fields also have "atLeast", \
                "minimumCharacters", "pattern" and "oneOf", files "atLeast" and "minimumBytes", and all files together \
                "maximumBytesOfAllFiles".
                """,
            valueName: "file"))
    var rules: String?

    @Option(
        help: ArgumentHelp(
            "A file whose first bytes contradict its Content-Type: record both types, correct it or refuse the form (record).",
            valueName: "record|correct|refuse"))
    var contradictedTypes: ContentTypePolicy?

    @Option(
        help: ArgumentHelp(
            "Run a command on each file, its path as the last argument: exit status 0 keeps the form, 1 refuses it.",
            discussion: """
                With 1, the first line of its output is the reason that the client is told (422). If it fails in \
                another way, or changes or removes the file, the form is refused with 503.
                """,
            valueName: "command"))
    var screen: String?

    @Option(
        help: ArgumentHelp(
            "How long a screening command may take for a file, including the wait for its turn "
                + "(\(Shown.seconds(UploadOptions().screeningTimeout))).",
            valueName: "seconds"))
    var screenTimeout: Double?

    @Option(
        help: ArgumentHelp(
            "The maximum number of screening commands at the same time. Defaults to the number of processors.",
            valueName: "count"))
    var maxScreenings: Int?

    func validate() throws {
        if let uploadExpiry {
            guard resume else { throw ValidationError("--upload-expiry has no meaning with --no-resume.") }
            guard (1...Self.longestExpiry).contains(uploadExpiry) else {
                throw ValidationError("--upload-expiry must be from 1 to \(Int(Self.longestExpiry)) seconds, a year.")
            }
        }
        if let locationOrigin {
            guard resume else { throw ValidationError("--location-origin has no meaning with --no-resume.") }
            guard Self.isOrigin(locationOrigin) else {
                throw ValidationError(
                    "--location-origin must be an origin without a path, such as https://example.org.")
            }
        }
        if interimResponses != nil, !resume {
            throw ValidationError("--interim-responses has no meaning with --no-resume.")
        }
        if let maxUploads, maxUploads < 1 { throw ValidationError("--max-uploads must be at least 1.") }
        if let maxScreenings, maxScreenings < 1 { throw ValidationError("--max-screenings must be at least 1.") }
        if let maxConnections, maxConnections < 1 { throw ValidationError("--max-connections must be at least 1.") }
        if let clientShare, !(clientShare > 0 && clientShare <= 100) {
            throw ValidationError("--client-share must be a percentage, more than 0 and at most 100.")
        }
        let timeouts = [
            ("grace", grace), ("keep-alive-timeout", keepAliveTimeout), ("idle-timeout", idleTimeout),
            ("screen-timeout", screenTimeout),
        ]
        for (name, seconds) in timeouts {
            // Timers count whole milliseconds, so a shorter time is impossible.
            if let seconds, !(seconds >= 0.001 && seconds <= 86400) {
                throw ValidationError("--\(name) must be from 0.001 to 86400 seconds.")
            }
        }
    }

    private static func isOrigin(_ text: String) -> Bool {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.host()?.isEmpty == false, url.user() == nil, url.query() == nil, url.fragment() == nil
        else { return false }
        return url.path().isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static let longestExpiry: Double = 365 * 24 * 60 * 60

    func apply(to receiver: inout Receiver) throws {
        if !resume { receiver.uploads.resumption = nil }
        if let uploadExpiry { receiver.uploads.resumption?.lifetime = .seconds(uploadExpiry) }
        receiver.uploads.resumption?.locationOrigin = locationOrigin
        receiver.uploads.acceptsAnyBody = anyBody
        if let interimResponses { receiver.uploads.resumption?.interimResponses = interimResponses }
        if let maxBody {
            receiver.uploads.limits.maximumBodyBytes = maxBody.bytes
            // A single file may be as large as the body.
            receiver.uploads.limits.maximumFileBytes = maxBody.bytes
        }
        if let maxFile { receiver.uploads.limits.maximumFileBytes = maxFile.bytes }
        if let maxField { receiver.uploads.limits.maximumFieldBytes = maxField.bytes }
        if let maxUploads { receiver.uploads.maximumConcurrentUploads = maxUploads }
        receiver.maximumConnections = maxConnections
        if let clientShare { receiver.uploads.clientShare = clientShare / 100 }
        if let keepFree { receiver.keptFreeBytes = keepFree.bytes }
        if let minimumRate { receiver.connections.minimumBytesPerSecond = Int(minimumRate.bytes) }
        if let grace { receiver.connections.gracePeriod = .seconds(grace) }
        if let keepAliveTimeout { receiver.connections.keepAliveTimeout = .seconds(keepAliveTimeout) }
        if let idleTimeout { receiver.connections.idleTimeout = .seconds(idleTimeout) }
        if let rules { receiver.uploads.rules = try Self.rules(at: rules) }
        if let screen {
            let screening = CommandScreening(screen)
            receiver.uploads.screen = { try await screening.screen($0) }
        }
        if let contradictedTypes { receiver.uploads.contentTypePolicy = contradictedTypes }
        if let screenTimeout { receiver.uploads.screeningTimeout = .seconds(screenTimeout) }
        if let maxScreenings { receiver.uploads.maximumConcurrentScreenings = maxScreenings }
    }

    private static func rules(at path: String) throws -> FormRules {
        let json = Data(try TextFile(path).bytes)
        do {
            return try FormRules(json: json)
        } catch {
            throw CommandFailure.input(path, "has no valid rules: \(error)")
        }
    }
}

/// The options for the limits of a form's parts.
struct FormLimitOptions: ParsableArguments {
    private static let defaults = FormLimits()

    @Option(help: ArgumentHelp("The maximum number of parts in a form (\(defaults.maximumParts)).", valueName: "count"))
    var maxParts: Int?

    @Option(
        help: ArgumentHelp(
            "The maximum size of a part's header, such as 8KB (\(defaults.maximumHeaderBytes)).", valueName: "size"))
    var maxPartHeader: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The maximum number of fields in a part's header (\(defaults.maximumHeaderFields)).", valueName: "count"))
    var maxPartHeaderFields: Int?

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes before the first part, such as 1KB (\(defaults.maximumPreambleBytes)).",
            valueName: "size"))
    var maxPreamble: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes after the last part, such as 1KB (\(defaults.maximumEpilogueBytes)).",
            valueName: "size"))
    var maxEpilogue: ByteCount?

    func validate() throws {
        for (name, count) in [("max-parts", maxParts), ("max-part-header-fields", maxPartHeaderFields)] {
            if let count, count < 1 { throw ValidationError("--\(name) must be at least 1.") }
        }
        if let maxPartHeader, maxPartHeader.bytes < 1 {
            throw ValidationError("--max-part-header must be at least 1 byte.")
        }
    }

    func apply(to limits: inout FormLimits) {
        if let maxParts { limits.maximumParts = maxParts }
        if let maxPartHeader { limits.maximumHeaderBytes = Int(maxPartHeader.bytes) }
        if let maxPartHeaderFields { limits.maximumHeaderFields = maxPartHeaderFields }
        if let maxPreamble { limits.maximumPreambleBytes = maxPreamble.bytes }
        if let maxEpilogue { limits.maximumEpilogueBytes = maxEpilogue.bytes }
    }
}

/// The default values as the help shows them.
enum Shown {
    /// A number of bytes as text, such as `64 KiB`, in the largest unit that gives a whole number.
    static func size(_ bytes: Int64) -> String {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        where bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return "\(bytes >> shift)\(unit)"
        }
        return "\(bytes)"
    }

    static func seconds(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        return seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
}

extension ByteCount: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}

extension ContentTypePolicy: ExpressibleByArgument {}
