import ArgumentParser
import Foundation
import Logging
import PostcardCLibrary
import PostcardForm
import PostcardPictures
import PostcardReceiver
import PostcardServer
import SystemPackage

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receives forms and keeps them in a directory, or in a bucket of an object store.",
        discussion: """
            Examples:
              postcard serve
              postcard serve --host 0.0.0.0 --token-file tokens --max-body 100MB
              postcard serve --store s3://uploads/forms

            Every option can also be set in the environment, such as POSTCARD_MAX_BODY=100MB for --max-body, or in the \
            JSON file of --config, such as {"max-body": "100MB", "allow-host": ["a.example", "b.example"]}. The \
            command line comes first, then the environment, where commas separate several values, then the file.

            After SIGTERM or SIGINT, requests in progress may finish within --shutdown-timeout. Then their connections \
            are closed. A second signal ends it immediately.

            Exit status:
              0    a signal ended it
              64   usage
              66   a file that it needs is missing or unreadable
              69   the object store or the port cannot be used
              73   the directory cannot be used
              130  a second SIGINT, in a shell
              143  a second SIGTERM, in a shell
            """)

    @OptionGroup(title: "Where it listens") var address: ListeningOptions

    @Option(
        help: ArgumentHelp(
            "How long requests in progress may take to finish at shutdown (\(Shown.seconds(ConnectionOptions().shutdownTimeout))).",
            valueName: "seconds"))
    var shutdownTimeout: Double?

    @Flag(
        inversion: .prefixedNo, exclusivity: .exclusive,
        help: "Keep the last requests and their problems, to show them on the page.")
    var inspect = true

    @Option(
        help: ArgumentHelp("The log level: debug, info, notice, warning or error (warning).", valueName: "level"),
        transform: { text in
            guard let level = Logger.Level(rawValue: text) else {
                throw ValidationError("'\(text)' is not a log level.")
            }
            return level
        })
    var logLevel = Logger.Level.warning

    @Option(
        help: ArgumentHelp(
            "A line for each request on standard error: text, json (one object a line) or none.",
            discussion: "Defaults to text on a terminal, and none otherwise and with --log-level info or debug.",
            valueName: "format"))
    var logFormat: RequestLines?

    @Option(
        help: ArgumentHelp(
            "A JSON file with options, by their names without dashes. Defaults to POSTCARD_CONFIG, or none.",
            valueName: "file"))
    var config: String?

    @OptionGroup(title: "Where the forms are kept") var storage: StorageOptions
    @OptionGroup(title: "What is accepted") var taking: ReceivingOptions
    @OptionGroup(title: "Limits of a form's parts") var limits: FormLimitOptions
    @OptionGroup(title: "Access") var access: AccessOptions
    @OptionGroup(title: "Behind a proxy") var proxies: ProxyOptions
    @OptionGroup(title: "Webhook") var webhooks: WebhookOptions

    func validate() throws {
        if let shutdownTimeout, !(0...86400).contains(shutdownTimeout) {
            throw ValidationError("--shutdown-timeout must be from 0 to 86400 seconds.")
        }
        if storage.store != nil, taking.keepFree != nil {
            throw ValidationError("--keep-free has no meaning with --store: no disk of this machine is used.")
        }
        if storage.store != nil, webhooks.webhook != nil {
            throw ValidationError(
                "--webhook cannot be used with --store: only a directory remembers what was announced.")
        }
        try access.validate(host: address.host)
        try proxies.validate(host: address.host)
    }

    func run() async throws {
        try await CommandFailure.reporting {
            OpenFiles.allowAsManyAsPossible()
            let receiver = try await receiver()
            let returning = Task { await FreedMemory.keepReturning() }
            defer { returning.cancel() }
            do {
                try await receiver.run { url in
                    // The receiver continues even if standard output is closed.
                    try? Terminal.writeLine("listening on \(url)")
                }
            } catch  where !(error is UploadStoreError || error is ServerCertificateError) {
                throw CommandFailure(
                    description: "Cannot listen on \(address.host):\(address.port): \(error)",
                    status: ExitStatus.unavailable)
            }
        }
    }

    private func receiver() async throws -> Receiver {
        var logger = Logger(label: "postcard") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = logLevel
        var receiver = try await storage.receiver(logger)
        receiver.logger = logger
        receiver.host = address.host
        receiver.port = address.port
        receiver.uploads.path = address.path
        if !inspect { receiver.inspection = nil }
        if let shutdownTimeout { receiver.connections.shutdownTimeout = .seconds(shutdownTimeout) }
        limits.apply(to: &receiver.uploads.limits)
        try taking.apply(to: &receiver)
        try access.apply(to: &receiver)
        proxies.apply(to: &receiver)
        try webhooks.apply(to: &receiver)
        let lines = logFormat ?? (Terminal.isInteractive && logLevel > .info ? .text : .off)
        if PictureFitter.isAvailable, let program = ProgramFile.path {
            receiver.thumbnailCommand = [program, "thumbnail"]
        }
        if lines != .off { receiver.onRequest = { lines.write($0) } }
        return receiver
    }
}

/// Returns freed memory to the system, because the C library of Linux keeps it after a burst of forms.
enum FreedMemory {
    #if canImport(Glibc)
    /// Blocks of at least this size, in bytes, are allocated separately, so that freeing returns them to the system. By
    /// default, the C library raises this size to that of any freed block, up to 32 MiB.
    private static let ownBytes: CInt = 128 << 10
    private static let interval = Duration.seconds(2)
    /// The size of the process, in bytes, up to which no memory is returned, because little of it is free.
    private static let usualBytes = 24 << 20
    /// The processor time since the last call up to which no memory is returned, because little was freed in that time.
    private static let idleTime = Duration.milliseconds(5)

    /// Sets ``ownBytes``, and returns freed blocks below that size at intervals, until the task is cancelled.
    static func keepReturning() async {
        // malloc.h is not in the module of the C library, so the function is looked up by name.
        if let function = dlsym(nil, "mallopt") {
            let mallopt = unsafeBitCast(function, to: (@convention(c) (CInt, CInt) -> CInt).self)
            let mmapThreshold: CInt = -3
            _ = mallopt(mmapThreshold, ownBytes)
        }
        guard let function = dlsym(nil, "malloc_trim") else { return }
        let trim = unsafeBitCast(function, to: (@convention(c) (Int) -> CInt).self)
        var trimmed = processorTime
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            guard processorTime - trimmed > idleTime, ownResidentBytes ?? 0 > usualBytes else { continue }
            _ = trim(0)
            trimmed = processorTime
        }
    }

    private static var processorTime: Duration { .microseconds(clock()) }

    /// The memory of the process in bytes, without pages of files such as its code; `nil` if unknown.
    private static var ownResidentBytes: Int? {
        guard let file = try? FileDescriptor.open("/proc/self/statm", .readOnly, options: [.closeOnExec]) else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = try? file.closeAfter { try bytes.withUnsafeMutableBytes { try file.read(into: $0) } }
        // The numbers of pages are the total size, the resident pages, and the shared pages among them.
        let numbers = String(decoding: bytes.prefix(count ?? 0), as: UTF8.self).split(separator: " ").prefix(3)
        let pages = numbers.compactMap { Int($0) }
        return pages.count == 3 ? (pages[1] - pages[2]) * Int(sysconf(CInt(_SC_PAGESIZE))) : nil
    }
    #else
    static func keepReturning() async {}
    #endif
}
