import PostcardFoundation

/// Asks for one answer by each of several callbacks, and returns those that are not `nil`.
///
/// The system may never call one of them, for example about a task that has just ended. The caller must not wait for it
/// forever.
///
/// - Parameters:
///   - askers: Whom to ask.
///   - patience: How long to wait for all answers. Defaults to 5 seconds.
///   - time: The clock for that. Defaults to the system's.
///   - ask: Asks, and passes the callback.
func answers<Key: Hashable & Sendable, Asker, Answer: Sendable>(
    from askers: [Key: Asker], within patience: Duration = .seconds(5), _ time: QueueTime = QueueTime(),
    _ ask: (Asker, @escaping @Sendable (Answer?) -> Void) -> Void
) async -> [Key: Answer] {
    let (stream, continuation) = AsyncStream.makeStream(of: (Key, Answer?).self)
    for (key, asker) in askers { ask(asker) { continuation.yield((key, $0)) } }
    let end = time.instant() + patience
    let alarm = Task {
        try? await time.sleep(end)
        continuation.finish()
    }
    defer { alarm.cancel() }
    var answers: [Key: Answer] = [:]
    var missing = Set(askers.keys)
    guard !missing.isEmpty else { return [:] }
    for await (key, answer) in stream {
        answers[key] = answer
        missing.remove(key)
        if missing.isEmpty { break }
    }
    return answers
}
