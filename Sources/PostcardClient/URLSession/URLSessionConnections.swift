import Dispatch
import HTTPTypes
import PostcardForm

#if canImport(FoundationNetworking)
import Foundation
import FoundationNetworking
#else
package import Foundation
#endif

/// A session, ended when nobody holds it any more: a session keeps its delegate and its threads alive until it
/// is told to end.
final class URLSessionConnections: Sendable {
    private let session: URLSession
    private let uploads = URLSessionUploads()
    /// The protocols that the configuration has beside the system's own. A session does not count the bytes that these send.
    private let addedProtocols: [URLProtocol.Type]

    /// Where the session is called. On Linux its methods wait for the queue that all sessions share, and with it
    /// for the streams of other forms; a thread of Swift's own, of which there are few and which the streams
    /// need, must not do that.
    private let calls = DispatchQueue(label: "Postcard URLSession")

    init(_ configuration: URLSessionConfiguration) {
        session = URLSession(configuration: configuration, delegate: uploads, delegateQueue: nil)
        let system = [URLSessionConfiguration.default, .ephemeral].flatMap { $0.protocolClasses ?? [] }
        addedProtocols = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }.filter { added in
            !system.contains { $0 == added }
        }
    }

    deinit {
        let session = session
        calls.async { session.finishTasksAndInvalidate() }
    }

    /// Begins to carry an upload, unless it has been given up in the meantime.
    func start(_ upload: URLSessionUpload) {
        calls.async { [self] in
            let task = task(for: upload)
            uploads.add(upload, for: task)
            if upload.isCarried(by: task, countingBytes: !addedProtocols.contains { $0.canInit(with: task) }) {
                task.resume()
            } else {
                uploads.remove(task)
                upload.complete(nil, nil, bytesSent: 0)
            }
        }
    }

    private func task(for upload: URLSessionUpload) -> URLSessionTask {
        let request = URLRequest(upload.request)
        if let content = upload.content { return session.uploadTask(with: request, from: content.bytes) }
        return upload.request.body == nil
            ? session.dataTask(with: request) : session.uploadTask(withStreamedRequest: request)
    }

    /// Closes the connection of an upload.
    func cancel(_ task: URLSessionTask) {
        calls.async { task.cancel() }
    }
}

extension URLRequest {
    init(_ request: UploadRequest) {
        self.init(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 604_800)
        httpMethod = request.method.rawValue
        httpShouldHandleCookies = false
        for field in request.headerFields { addValue(field.value, forHTTPHeaderField: field.name.rawName) }
        #if canImport(FoundationNetworking)
        // libcurl would ask for a 100 (Continue) before a body in chunks and wait a second for it. A blank value
        // takes the field out; an empty one would be sent, and be refused by some servers.
        if value(forHTTPHeaderField: "Expect") == nil { setValue(" ", forHTTPHeaderField: "Expect") }
        // On a kept connection that breaks, libcurl begins a request anew, without a body to send. What goes before an
        // upload leaves it none.
        if request.body.map({ $0.isSlice && $0.contentLength == 0 }) ?? true {
            setValue("close", forHTTPHeaderField: "Connection")
        }
        #else
        if let length = request.body?.contentLength { setValue("\(length)", forHTTPHeaderField: "Content-Length") }
        allow(request.networks)
        #endif
    }
}

#if !canImport(FoundationNetworking)
extension URLRequest {
    /// Keeps the request off the networks that it may not use.
    package mutating func allow(_ networks: AllowedNetworks) {
        allowsCellularAccess = networks.cellular
        allowsExpensiveNetworkAccess = networks.expensive
        allowsConstrainedNetworkAccess = networks.constrained
    }
}
#endif
