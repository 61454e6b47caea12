import ArgumentParser
import Foundation
import PostcardReceiver
import PostcardServer
import SystemPackage

/// Whom `serve` lets in, and how it shows who it is.
struct AccessOptions: ParsableArguments {
    @Option(
        help: "Only who sends this token in Authorization: Bearer may post, and read unless there is a --read-token.")
    var token: String?

    @Option(help: ArgumentHelp("The same with the tokens in a file, one a line.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("Only who sends this token may read and delete what was received.", valueName: "token"))
    var readToken: String?

    @Option(help: ArgumentHelp("The same with the tokens in a file, one a line.", valueName: "file"))
    var readTokenFile: String?

    @Flag(help: "Lets everybody post, read and delete who reaches the address.")
    var open = false

    @Option(
        help: ArgumentHelp(
            "A name by which requests may call a receiver that listens to this machine alone; repeatable.",
            valueName: "name"))
    var allowHost: [String] = []

    @Option(
        help: ArgumentHelp(
            "An origin whose pages may post here and read the answers, such as https://app.example; repeatable.",
            valueName: "origin"))
    var allowOrigin: [String] = []

    @Option(
        help: ArgumentHelp("A PEM file with the certificate and its chain: connections are of TLS.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A PEM file with the certificate's private key.", valueName: "file"))
    var privateKey: String?

    func validate() throws {
        guard (certificate == nil) == (privateKey == nil) else {
            throw ValidationError("--certificate and --private-key are given together.")
        }
        for origin in allowOrigin where !Self.isOrigin(origin) {
            throw ValidationError("'\(origin)' is no origin. Write it without a path, such as https://app.example.")
        }
        for (name, token) in [("token", token), ("read-token", readToken)] {
            if let token, !Self.isToken(token) {
                throw ValidationError("--\(name) wants visible ASCII characters, and at least one.")
            }
        }
    }

    /// Strangers are let in only by who says so.
    func validate(host: String) throws {
        guard !open, token == nil, tokenFile == nil, !LoopbackAddress.contains(host) else { return }
        throw ValidationError(
            "Others than this machine reach \(host). Give --token or --token-file, or --open to let everybody in.")
    }

    func apply(to receiver: inout Receiver) throws {
        receiver.tokens.posting = try Self.tokens(token, tokenFile)
        let reading = try Self.tokens(readToken, readTokenFile)
        receiver.tokens.reading = reading.isEmpty ? receiver.tokens.posting : reading
        receiver.allowedHosts = Set(allowHost)
        receiver.allowedOrigins = Set(allowOrigin)
        if let certificate, let privateKey {
            receiver.certificate = ServerCertificate(chain: FilePath(certificate), privateKey: FilePath(privateKey))
        }
    }

    private static func tokens(_ token: String?, _ file: String?) throws -> Set<String> {
        var tokens = Set(token.map { [$0] } ?? [])
        guard let file else { return tokens }
        guard let text = try? String(contentsOf: URL(filePath: file), encoding: .utf8) else {
            throw CommandFailure.input(file, "cannot be read")
        }
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        tokens.formUnion(lines.filter { !$0.isEmpty })
        // Tokens that nobody can send, or none, would let nobody in, or everybody.
        guard !tokens.isEmpty, tokens.allSatisfy(isToken) else {
            throw CommandFailure.input(file, "holds no tokens: write one a line, in visible ASCII characters")
        }
        return tokens
    }

    /// Whether a browser would write it so (RFC 6454 §6.2).
    private static func isOrigin(_ text: String) -> Bool {
        guard let scheme = text.range(of: "://"), scheme.lowerBound > text.startIndex else { return false }
        let host = text[scheme.upperBound...]
        return isToken(text) && !host.isEmpty && !host.contains { "/?#@*".contains($0) }
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}
