// ios: does not conform to protocol 'Implements_didSendBodyData'
import Foundation

final class SeededDelegate: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int, totalBytesSent: Int,
        totalBytesExpectedToSend: Int
    ) {}
}

extension SeededDelegate: Implements_didSendBodyData {}
