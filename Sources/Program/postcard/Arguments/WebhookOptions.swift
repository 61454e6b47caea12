import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PostcardFoundation
import PostcardReceiver
import PostcardWire

/// The endpoint to which `serve` announces each record, and the secrets with which it signs the messages.
struct WebhookOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Post a signed message about each record here, as Standard Webhooks describes. Defaults to none.",
            discussion: """
                Each record is announced at least once, also if the receiver was killed: what is left is sent after \
                the next start. GET /webhooks lists what is stuck. Not with --store.
                """,
            valueName: "url"))
    var webhook: String?

    @Option(
        help: ArgumentHelp(
            "A secret to sign with, such as from: echo whsec_$(openssl rand -base64 32); repeatable.",
            discussion: """
                Other users of this machine can read arguments. POSTCARD_WEBHOOK_SECRET and --webhook-secret-file keep \
                it from them.
                """,
            valueName: "secret"))
    var webhookSecret: [String] = []

    @Option(help: ArgumentHelp("A file with the secrets, one per line. Defaults to none.", valueName: "file"))
    var webhookSecretFile: String?

    func validate() throws {
        guard let webhook else {
            for (name, isUsed) in [
                ("webhook-secret", !webhookSecret.isEmpty), ("webhook-secret-file", webhookSecretFile != nil),
            ] where isUsed {
                throw ValidationError("--\(name) has no meaning without --webhook.")
            }
            return
        }
        guard let url = URL(string: webhook), ["http", "https"].contains(url.scheme?.lowercased()),
            let host = url.host(), !host.isEmpty, url.hasValidPort
        else { throw ValidationError("--webhook must be an address such as https://app.example/hooks/postcard.") }
        guard url.user() == nil, url.password() == nil else {
            throw ValidationError("--webhook must have no password in it: the signature shows who sends a message.")
        }
        guard !webhookSecret.isEmpty || webhookSecretFile != nil else {
            throw ValidationError("--webhook needs --webhook-secret-file or --webhook-secret, to sign its messages.")
        }
        for secret in webhookSecret where WebhookSecret(secret) == nil {
            throw ValidationError("--webhook-secret is not a secret: \(Self.form)")
        }
    }

    private static let form =
        "write whsec_ and the base64 of 24 to 64 random bytes, such as from: echo whsec_$(openssl rand -base64 32)"

    func apply(to receiver: inout Receiver) throws {
        guard let webhook else { return }
        var secrets = webhookSecret.compactMap { WebhookSecret($0) }
        if let webhookSecretFile { secrets += try Self.secrets(in: webhookSecretFile) }
        let sender = WebhookSender()
        receiver.webhook = Webhook(url: webhook, secrets: secrets) { message in
            try await sender.post(message, to: webhook)
        }
    }

    private static func secrets(in file: String) throws -> [WebhookSecret] {
        let secrets = try TextFile(file).lines().map { WebhookSecret($0) }
        guard !secrets.isEmpty, !secrets.contains(where: { $0 == nil }) else {
            throw CommandFailure.input(file, "has no secrets, or a line that is not a secret: \(form)")
        }
        return secrets.compactMap(\.self)
    }
}

/// Posts messages to the endpoint of a webhook.
private final class WebhookSender: Sendable {
    private let client: HTTPClient

    /// How long an endpoint may take to respond.
    private static let timeout = TimeAmount.seconds(15)
    /// How long reading the body of a response may take.
    private static let patience = Duration.seconds(5)
    /// The maximum number of bytes to read of a response, so that its connection can be used again.
    private static let maximumResponseBytes = 64 << 10

    init() {
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(10)
        client = HTTPClient(
            eventLoopGroupProvider: .shared(HTTPClient.defaultEventLoopGroup), configuration: configuration)
    }

    deinit {
        client.shutdown { _ in }
    }

    /// Sends a message to the endpoint. Returns the status of the endpoint's response.
    func post(_ message: Webhook.Message, to url: String) async throws -> Int {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        for (name, value) in message.headers { request.headers.add(name: name, value: value) }
        request.headers.add(name: "user-agent", value: "postcard")
        request.body = .bytes(ByteBuffer(bytes: message.body))
        let response = try await client.execute(request, timeout: Self.timeout)
        await drain(response.body)
        return Int(response.status.code)
    }

    /// Reads a short body, so that the connection can be used again. Ignores errors and the rest of a long body.
    private func drain(_ body: HTTPClientResponse.Body) async {
        _ = try? await within(Self.patience, or: CancellationError()) {
            try await body.collect(upTo: Self.maximumResponseBytes)
        }
    }
}
