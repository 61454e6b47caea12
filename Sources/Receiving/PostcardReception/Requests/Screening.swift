package import Logging
import PostcardFoundation
package import PostcardStore
import Synchronization

/// Screens a limited number of files at once. Addresses whose files wait are served in turn.
package struct Screening: Sendable {
    private let screen: @Sendable (FinishedFile) async throws -> ScreeningVerdict
    private let timeLimit: Duration
    private let shares: ShareAccount

    /// - Parameter shares: Limits how many files are screened at once.
    package init(
        timeLimit: Duration, _ shares: ShareAccount,
        screen: @escaping @Sendable (FinishedFile) async throws -> ScreeningVerdict
    ) {
        self.screen = screen
        self.timeLimit = timeLimit
        self.shares = shares
    }

    /// Makes the screening in the options; `nil` if the options have none.
    init?(_ options: UploadOptions, _ shares: ShareAccount) {
        guard let screen = options.screen else { return nil }
        self.init(timeLimit: options.screeningTimeout, shares, screen: screen)
    }

    /// Screens files one after the other. `peer` is the client that sent them; `nil` if it is unknown. Returns the
    /// index of the first refused file, and the reason; `nil` if all files are accepted. Throws ``UploadProblem`` if a
    /// file cannot be screened.
    package func refusal(
        of files: [FinishedFile], from peer: PeerAddress?, logger: Logger
    ) async throws(UploadProblem) -> (index: Int, reason: String)? {
        for (index, file) in files.enumerated() {
            let verdict: ScreeningVerdict
            do {
                verdict = try await screen(file, for: peer)
            } catch let problem as UploadProblem {
                throw problem
            } catch {
                logger.error("Could not screen a file", metadata: ["file": "\(index)", "error": "\(error)"])
                throw UploadProblem.notScreened
            }
            if case .refused(let reason) = verdict { return (index, reason) }
        }
        return nil
    }

    /// Waits until the file may be screened, and screens it. Throws ``UploadProblem`` if the screening cannot begin
    /// within the time limit, ``ScreeningTimeout`` if it does not end within the limit, and the errors of the
    /// screening.
    func screen(_ file: FinishedFile, for peer: PeerAddress?) async throws -> ScreeningVerdict {
        let turn = Turn()
        return try await within(timeLimit, or: overdue(turn)) { try await screen(file, for: peer, in: turn) }
    }

    private func overdue(_ turn: Turn) -> any Error {
        guard turn.hasCome.load(ordering: .relaxed) else { return shares.usedUp(.screenings) }
        return ScreeningTimeout(timeLimit: timeLimit)
    }

    /// Records whether the turn of a waiting file has come.
    private final class Turn: Sendable {
        let hasCome = Atomic(false)
    }

    private func screen(
        _ file: FinishedFile, for peer: PeerAddress?, in turn: Turn
    ) async throws -> ScreeningVerdict {
        let (hold, _) = try await shares.wait(for: 1...1, of: .screenings, for: peer)
        defer { withExtendedLifetime(hold) {} }
        turn.hasCome.store(true, ordering: .relaxed)
        return try await screen(file)
    }
}

/// A screening did not end within the time limit.
struct ScreeningTimeout: Error, CustomStringConvertible {
    let timeLimit: Duration

    var description: String { "A file was not screened within \(timeLimit)." }
}
