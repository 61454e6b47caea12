import ServiceLifecycle

/// Removes uploads that have expired, also where no request comes.
struct ExpirySweep: Service {
    let uploads: UnfinishedUploads

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await uploads.sweep()
                try? await Task.sleep(for: .seconds(60))
            }
        }
    }
}
