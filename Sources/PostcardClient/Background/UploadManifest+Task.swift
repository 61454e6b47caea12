import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension UploadManifest {
    /// What the request of a task under way says of an upload.
    init?(_ id: UUID, _ task: URLSessionTask) {
        guard let request = task.originalRequest, let url = request.url,
            let method = HTTPRequest.Method(rawValue: request.httpMethod ?? "POST"),
            let contentType = request.value(forHTTPHeaderField: "Content-Type")
        else { return nil }
        var fields = HTTPFields()
        for (key, value) in request.allHTTPHeaderFields ?? [:] {
            // A blank Expect is how URLSession on Linux is told to send none.
            guard let name = HTTPField.Name(key), name != .contentType, name != .expect || value != " " else {
                continue
            }
            fields[name] = value
        }
        self.init(
            id: id, url: url, method: method, contentType: contentType, headerFields: fields,
            bodyLength: max(task.countOfBytesExpectedToSend, 0), filenames: [], added: Date(),
            needsUnmeteredNetwork: request.needsUnmeteredNetwork)
        attempts = 1
        state = .started
    }

    /// The request that sends the upload, but for its body.
    ///
    /// - Parameter headerFields: Those that are not kept, or that take the place of kept ones.
    ///
    /// - Throws: ``BackgroundUploadError`` where a field is missing, or where nothing can be sent to the URL.
    func request(adding headerFields: HTTPFields) throws(BackgroundUploadError) -> URLRequest {
        let headerFields = try self.headerFields(adding: headerFields)
        do {
            let request = try UploadRequest(
                url: url, method: HTTPRequest.Method(rawValue: method) ?? .post, headerFields: headerFields, body: nil,
                maximumResponseBytes: 0)
            var urlRequest = URLRequest(request)
            urlRequest.setValue(contentType, forHTTPHeaderField: "Content-Type")
            urlRequest.needsUnmeteredNetwork = needsUnmeteredNetwork ?? false
            return urlRequest
        } catch {
            throw .notRestartable(id, error.message)
        }
    }
}

extension URLRequest {
    /// Whether it waits for a network that is not metered. Linux does not know them apart.
    fileprivate var needsUnmeteredNetwork: Bool {
        get {
            #if canImport(FoundationNetworking)
            false
            #else
            !allowsExpensiveNetworkAccess
            #endif
        }
        set {
            #if !canImport(FoundationNetworking)
            allowsExpensiveNetworkAccess = !newValue
            allowsConstrainedNetworkAccess = !newValue
            #endif
        }
    }
}
