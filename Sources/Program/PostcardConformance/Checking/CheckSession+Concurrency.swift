import PostcardWire

/// A request whose content has begun and not ended.
struct OpenRequest: Sendable {
    let connection: ConformanceConnection
    let rest: [UInt8]

    /// Sends the rest of the content.
    func finish() { connection.send(rest) }

    /// Waits until the server has ended the request: by a final response, or by closing the connection.
    ///
    /// - Returns: What it did; `nil` if nothing by the deadline.
    func ending(before deadline: ContinuousClock.Instant) async -> String? {
        do {
            while let response = try await connection.next(before: deadline) {
                if !response.isInterim { return "the response \(response.status)" }
            }
            return nil
        } catch {
            return "its connection was closed"
        }
    }
}

extension CheckSession {
    /// Begins a request on a connection of its own, and gives the server a moment to receive its beginning.
    ///
    /// - Parameters:
    ///   - step: A request with a pause in its content.
    ///   - mayEnd: Whether the server may have closed the connection by then, because another request ended this one.
    func begin(_ step: Step, mayEnd: Bool = false) async throws -> OpenRequest {
        let (address, request) = try render(step)
        let connection: ConformanceConnection
        do throws(ConnectionFailure) {
            connection = try await openConnection(to: address)
        } catch {
            throw CheckInterruption.unchecked(error.description)
        }
        connection.beginRequest(step.method)
        connection.send(request.head + request.beginning)
        try await Task.sleep(for: settlingTime)
        guard connection.isOpen || mayEnd else {
            throw CheckInterruption.unchecked("the server closed the connection of the first request")
        }
        return OpenRequest(connection: connection, rest: request.rest)
    }

    /// The offset that HEAD returns.
    func offset() async throws -> Int64 {
        let exchange = try await perform(.head)
        guard let final = exchange.final, final.isSuccess, let offset = final.fields.uploadOffset else {
            throw CheckInterruption.unchecked(exchange.summary)
        }
        return offset
    }
}
