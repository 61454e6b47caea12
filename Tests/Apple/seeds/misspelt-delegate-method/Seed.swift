// ios: no framework declares urlSession(_:task:didCompletedWithError:)
import Foundation

final class SeededDelegate: NSObject, URLSessionTaskDelegate {
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompletedWithError error: (any Error)?) {}
}
