import Hummingbird

/// Responds to requests that only read in a task of its own for each. A task keeps the memory of its deepest calls until
/// it ends, and that of the connection also writes the response, which its client may leave unread.
struct BriefResponder<Base: HTTPResponder>: HTTPResponder where Base.Context: Sendable {
    let base: Base

    func respond(to request: Request, context: Base.Context) async throws -> Response {
        guard request.method == .get else { return try await base.respond(to: request, context: context) }
        async let response = base.respond(to: request, context: context)
        return try await response
    }
}
