import HTTPTypes
import Hummingbird

/// The place of uploads that can be resumed, below the place where forms are posted.
package enum ResumptionPath {
    static let folder = "resumable"

    /// Whether a path is that of an upload that can be resumed.
    package static func contains(_ path: String, below uploadPath: String) -> Bool {
        let segments = path.split(separator: "/")
        return segments.count > 1 && segments.dropLast() == (uploadPath + "/" + folder).split(separator: "/")[...]
    }
}

extension RouteTable {
    /// Adds the routes by which forms are posted that can be resumed.
    mutating func addResumption<Store>(_ reception: ResumableReception<Store>) {
        let path = reception.reception.options.path
        add(RouterPath(path), .post) { request, context in
            try await reception.create(request, logger: context.logger)
        }
        add(RouterPath(path), .options) { request, _ in try reception.offer(to: request) }
        let upload = RouterPath(ResumableReception<Store>.path(below: path) + "/{id}")
        add(upload, .head) { request, context in
            try await reception.progress(request, id: context.parameters.get("id"), logger: context.logger)
        }
        add(upload, .patch) { request, context in
            try await reception.append(request, id: context.parameters.get("id"), logger: context.logger)
        }
        add(upload, .delete) { request, context in
            try await reception.cancel(request, id: context.parameters.get("id"), logger: context.logger)
        }
    }
}
