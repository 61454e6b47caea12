#if os(macOS) || os(Linux)
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardServer
import SystemPackage

/// Responds to `GET /uploads/ID/files/N/thumbnail` with a small JPEG, for the page.
///
/// Files may come from anyone, so a separate program decodes the pictures, one at a time, with limits on its time and
/// memory. The latest thumbnails are kept in memory.
struct Thumbnails: Sendable {
    private let store: LocalUploadStore
    private let command: [String]
    private let shares: ShareAccount
    private let budget: ResponseBudget
    private let cache = ThumbnailCache(maximumBytes: 4 << 20)

    /// The maximum size of a thumbnail, in bytes.
    static let maximumBytes = 256 << 10
    /// How long making a thumbnail may take on a busy machine. The program itself limits its processor time.
    private static let timeLimit = Duration.seconds(120)
    /// The exit status of a program that was killed.
    private static let killedStatus: Int32 = 128 + 9
    /// How long a request may wait until its thumbnail is made.
    private static let patience = Duration.seconds(60)

    /// - Parameter command: A program and its arguments. The path of a file is added as the last argument. The program
    ///   writes a JPEG of the file to standard output.
    init(store: LocalUploadStore, command: [String], shares: ShareAccount, budget: ResponseBudget) {
        self.store = store
        self.command = command
        self.shares = shares
        self.budget = budget
    }

    func response(
        to request: Request, id: String?, index: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        guard let id = id.flatMap({ UploadID($0) }) else { throw UploadProblem.uploadNotFound }
        guard let index = index.flatMap({ Int($0) }), let file = try await described(index, of: id) else {
            throw UploadProblem.fileNotFound
        }
        let tag = "\"\(file.sha256)-thumbnail\""
        if request.headers[.ifNoneMatch] == tag {
            return Response(status: .notModified, headers: [.eTag: tag, .cacheControl: "no-cache"])
        }
        let entry = try await entry(for: file, index, of: id, on: connection, logger: logger)
        guard case .picture(let bytes) = entry else {
            throw UploadProblem.noThumbnail
        }
        var headers = HTTPFields(content: MediaType.jpeg.value, cacheControl: "no-cache")
        headers[.eTag] = tag
        headers[.contentSecurityPolicy] = "sandbox; default-src 'none'"
        return Response(status: .ok, headers: headers, body: try budget.body(of: bytes, on: connection))
    }

    private func described(_ index: Int, of id: UploadID) async throws -> UploadRecord.File? {
        do {
            return try await store.describedFile(index, of: id)
        } catch is UploadStoreError {
            throw UploadProblem.unreadable
        }
    }

    private func entry(
        for file: UploadRecord.File, _ index: Int, of id: UploadID, on connection: UploadConnection?, logger: Logger
    ) async throws -> ThumbnailCache.Entry {
        if let known = cache[file.sha256] { return known }
        guard file.size > 0 else { return .none }
        let hold = try await turn(on: connection)
        defer { withExtendedLifetime(hold) {} }
        // Another request for the same file may have made the thumbnail meanwhile.
        if let known = cache[file.sha256] { return known }
        let made = try await make(store.path(ofFile: index, of: id), logger: logger)
        cache.add(made, for: file.sha256)
        return made
    }

    /// Waits for the client's turn to have a thumbnail made. The wait ends if the client closes the connection.
    private func turn(on connection: UploadConnection?) async throws -> ShareAccount.Hold {
        try await within(Self.patience, or: shares.usedUp(.thumbnails)) {
            try await shares.wait(
                for: 1...1, of: .thumbnails, for: connection?.peer, on: connection?.channel
            ).hold
        }
    }

    private func make(_ path: FilePath, logger: Logger) async throws -> ThumbnailCache.Entry {
        do {
            let ending = try await within(Self.timeLimit, or: shares.usedUp(.thumbnails)) {
                try await ChildProcess.run(
                    command + [path.string], without: [ChildProcess.options, "AWS_"],
                    maximumOutputBytes: Self.maximumBytes + 1)
            }
            // The system killed the program, probably because memory was low. A later request may succeed.
            guard ending.status != Self.killedStatus else {
                throw shares.usedUp(.thumbnails)
            }
            let bytes = ending.output
            guard ending.status == 0, bytes.count <= Self.maximumBytes, MediaType.forFirstBytes(bytes) == .jpeg else {
                return .none
            }
            return .picture(ByteBuffer(bytes: bytes))
        } catch let error as Errno {
            logger.error("Could not start the program for thumbnails", metadata: ["error": "\(error)"])
            throw UploadProblem.noThumbnail
        }
    }
}

extension UploadProblem {
    fileprivate static let noThumbnail = UploadProblem(
        status: .notFound, code: "no-thumbnail", message: "The receiver cannot make a small picture of this file.",
        advice: "Fetch the file itself.")
}
#endif
