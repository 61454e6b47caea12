public import Logging
package import PostcardReception
public import PostcardStore
public import ServiceLifecycle

/// Removes old data from a store regularly, in an application of your own. `Receiver` already has this service.
///
/// ```swift
/// let application = Application(
///     router: router, server: .uploads(), services: [StoreSweep(of: store, logger: logger)])
/// ```
///
/// Without the service, `LocalUploadStore` removes expired uploads only when new uploads begin, and a bucket keeps all
/// data of deletions and interrupted uploads.
public struct StoreSweep: Service {
    private let store: any MaintainedUploadStore
    private let meter: UploadMeter?
    private let logger: Logger

    /// Makes a service.
    ///
    /// - Parameters:
    ///   - store: The store. Its `MaintainedUploadStore.sweepInterval` determines how often old data is removed.
    ///   - logger: Logs failed sweeps. The next sweep continues their work.
    public init(of store: any MaintainedUploadStore, logger: Logger) {
        self.init(of: store, meter: nil, logger: logger)
    }

    package init(of store: any MaintainedUploadStore, meter: UploadMeter?, logger: Logger) {
        self.store = store
        self.meter = meter
        self.logger = logger
    }

    /// Sweeps the store until the application shuts down or the task is cancelled.
    public func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await store.sweep()
                } catch  where !Task.isCancelled {
                    logger.warning("Could not sweep the store", metadata: ["error": "\(error)"])
                    meter?.storeFailed(.sweep, error)
                } catch {}
                try? await Task.sleep(for: store.sweepInterval)
            }
        }
    }
}
