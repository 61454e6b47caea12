import PostcardServer
import ServiceLifecycle

/// Removes uploads that have expired, also where no request comes.
struct ExpirySweep: Service {
    let store: LocalUploadStore

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await store.removeExpired()
                try? await Task.sleep(for: .seconds(60))
            }
        }
    }
}
