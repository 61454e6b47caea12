import NIOPosix
package import PostcardFiles
import PostcardFoundation
import Synchronization
package import SystemPackage

/// The threads that wait for the disk. More threads than processors help: several syncs together take as long as one.
private let fileThreads: NIOThreadPool = {
    let pool = NIOThreadPool(numberOfThreads: 16)
    pool.start()
    return pool
}()

/// The number of tasks that wait for a file thread.
private let waitingWork = Atomic<Int>(0)

/// The number of blocking tasks in this process that wait for a file thread.
package var waitingFileWork: Int { waitingWork.load(ordering: .relaxed) }

/// Blocking work, such as writing to a disk, on a file thread. The task that starts the work continues meanwhile.
///
/// The work begins at once and always completes. ``value()`` waits for its end, and can be called once. A `FileError`
/// becomes an ``UploadStoreError``, which the callers of a store handle.
final class FileWork<Value: Sendable>: Sendable {
    private enum State {
        case running
        case awaited(CheckedContinuation<Value, any Error>)
        case finished(Result<Value, any Error>)
    }

    private let state = Mutex(State.running)

    init(_ work: @escaping @Sendable () throws -> Value) {
        waitingWork.add(1, ordering: .relaxed)
        fileThreads.submit { _ in
            waitingWork.subtract(1, ordering: .relaxed)
            // The ignored argument says whether the pool was shut down, which never happens.
            self.finish(
                Result {
                    do {
                        return try work()
                    } catch let error as FileError {
                        throw UploadStoreError(error)
                    }
                })
        }
    }

    private func finish(_ result: Result<Value, any Error>) {
        let waiting: CheckedContinuation<Value, any Error>? = state.withLock { state in
            guard case .awaited(let continuation) = state else {
                state = .finished(result)
                return nil
            }
            return continuation
        }
        waiting?.resume(with: result)
    }

    func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result: Result<Value, any Error>? = state.withLock { state in
                guard case .finished(let result) = state else {
                    state = .awaited(continuation)
                    return nil
                }
                return result
            }
            if let result { continuation.resume(with: result) }
        }
    }
}

package func onFileThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await FileWork(work).value()
}

/// Temporary files in their own directory, which is created for the first file.
package final class TemporaryFiles: Sendable {
    private struct Folder {
        let path: FilePath
        var count = 0
    }

    private let folder = Mutex<Folder?>(nil)

    package init() {}

    /// Makes a file. The call blocks.
    package func make() throws(FileError) -> (path: FilePath, file: DurableFile) {
        let path = try folder.withLock { folder throws(FileError) in
            var used: Folder
            if let folder { used = folder } else { used = try Self.makeFolder() }
            let path = used.path.appending(String(used.count))
            used.count += 1
            folder = used
            return path
        }
        return (path, try DurableFile(path))
    }

    private static func makeFolder() throws(FileError) -> Folder {
        let temporary = FilePath(FileManager.default.temporaryDirectory.path(percentEncoded: false))
        let path = temporary.appending("postcard-form-\(UUID().uuidString)")
        try DurableFiles.makeDirectory(path)
        return Folder(path: path)
    }

    /// Removes the directory with all its files, on another thread.
    package func remove() {
        guard let path = folder.withLock({ $0.take()?.path }) else { return }
        _ = FileWork { try? FileManager.default.removeItem(atPath: path.string) }
    }
}
