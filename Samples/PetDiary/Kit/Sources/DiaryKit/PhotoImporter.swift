public import Foundation
public import Observation
public import PostcardForm

/// Copies a photo into a folder and makes it a part of a form.
///
/// - Parameters:
///   - folder: The folder for the copy.
///   - report: Called with what has arrived, from 0 to 1.
public typealias PhotoLoad =
    @MainActor (_ folder: URL, _ report: @escaping @Sendable (Double) -> Void) async throws -> FormPart

/// Imports the photos of an entry one after the other. Each can be cancelled alone.
@MainActor @Observable
public final class PhotoImporter {
    public private(set) var imports = PhotoImports()

    @ObservationIgnored private var tasks: [Int: Task<FormPart, any Error>] = [:]

    public init() {}

    /// Imports photos, and returns the parts of those that were not cancelled, in their order. If there is a
    /// ``PhotoImports/problem`` then, nothing is to be sent.
    public func load(_ loads: [PhotoLoad], into folder: URL) async -> [FormPart] {
        imports = PhotoImports(loads.count)
        tasks = [:]
        var parts: [Int: FormPart] = [:]
        while !Task.isCancelled, let id = imports.next() {
            let load = loads[id]
            let task = Task { [weak self] in
                try await load(folder) { fraction in
                    Task { @MainActor in self?.imports.note(fraction, of: id) }
                }
            }
            tasks[id] = task
            do {
                parts[id] = try await withTaskCancellationHandler {
                    try await task.value
                } onCancel: {
                    task.cancel()
                }
                imports.end(id, .ready)
            } catch is CancellationError {
                imports.end(id, .cancelled)
            } catch {
                imports.end(id, .failed(error.localizedDescription))
            }
        }
        return imports.ready.compactMap { parts[$0] }
    }

    /// Takes a photo out of the entry, and ends its download.
    public func cancel(_ id: Int) {
        imports.cancel(id)
        tasks[id]?.cancel()
    }

    /// Forgets the photos.
    public func clear() { imports = PhotoImports() }
}
