import Hummingbird
import PostcardReception
import PostcardServer
import Settings

@main
struct HummingbirdReceiver {
    static func main() async throws {
        guard let settings = Settings(CommandLine.arguments) else { return print("PORT FOLDER NAME") }
        var connections = ConnectionOptions()
        connections.idleTimeout = settings.timeouts.idle
        connections.minimumBytesPerSecond = settings.timeouts.minimumBytesPerSecond
        connections.gracePeriod = settings.timeouts.gracePeriod
        // begin
        let store = try LocalUploadStore(directory: settings.folder)
        let router = Router()
        router.add(middleware: ProblemMiddleware())
        if let tokens = settings.tokens { router.add(middleware: BearerTokenMiddleware(tokens)) }
        router.addUploads(to: store, options: settings.options)
        let application = Application(
            router: router, server: .uploads(options: connections),
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: settings.port)))
        try await application.runService()
        // end
    }
}
