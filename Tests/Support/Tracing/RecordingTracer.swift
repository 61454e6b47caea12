import Synchronization
package import Tracing

/// A tracer that keeps its spans, and passes traces on in the field `traceparent` (W3C Trace Context).
package final class RecordingTracer: Tracer {
    /// A span that has ended.
    package struct Finished: Sendable {
        package let name: String
        package let kind: SpanKind
        package let identity: TraceParent
        /// The span that it is a part of.
        package let parent: TraceParent?
        package let attributes: SpanAttributes
        package let isError: Bool
    }

    private let finished = Mutex<[Finished]>([])

    package init() {}

    package var spans: [Finished] { finished.withLock { $0 } }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context[TraceParent.Key.self]
        let identity = TraceParent(trace: parent?.trace ?? TraceParent.random(32), span: TraceParent.random(16))
        context[TraceParent.Key.self] = identity
        return RecordedSpan(operationName, context) { [self] name, attributes, isError in
            let span = Finished(
                name: name, kind: kind, identity: identity, parent: parent, attributes: attributes, isError: isError)
            finished.withLock { $0.append(span) }
        }
    }

    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let text = extractor.extract(key: "traceparent", from: carrier), let parent = TraceParent(text) else {
            return
        }
        context[TraceParent.Key.self] = parent
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let parent = context[TraceParent.Key.self] else { return }
        injector.inject(parent.text, forKey: "traceparent", into: &carrier)
    }
}

/// What the field `traceparent` names: a trace, and a span of it.
package struct TraceParent: Sendable, Hashable {
    package let trace: String
    package let span: String

    enum Key: ServiceContextKey {
        typealias Value = TraceParent
    }

    package init(trace: String, span: String) {
        self.trace = trace
        self.span = span
    }

    package init?(_ text: String) {
        let parts = text.split(separator: "-").map(String.init)
        guard parts.count == 4, parts[0] == "00", parts[1].count == 32, parts[2].count == 16 else { return nil }
        self.init(trace: parts[1], span: parts[2])
    }

    package var text: String { "00-\(trace)-\(span)-01" }

    package static func random(_ digits: Int) -> String {
        String((0..<digits).map { _ in "0123456789abcdef".randomElement() ?? "0" })
    }
}

package final class RecordedSpan: Span {
    private struct State {
        var name: String
        var attributes: SpanAttributes = [:]
        var isError = false
        var hasEnded = false
    }

    package let context: ServiceContext
    private let state: Mutex<State>
    private let onEnd: @Sendable (String, SpanAttributes, Bool) -> Void

    init(
        _ name: String, _ context: ServiceContext, onEnd: @escaping @Sendable (String, SpanAttributes, Bool) -> Void
    ) {
        self.context = context
        self.onEnd = onEnd
        state = Mutex(State(name: name))
    }

    package var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }

    package var isRecording: Bool { state.withLock { !$0.hasEnded } }

    package func setStatus(_ status: SpanStatus) {
        state.withLock { $0.isError = status.code == .error }
    }

    package func addEvent(_ event: SpanEvent) {}

    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {}

    package func addLink(_ link: SpanLink) {}

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let ended: State? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return state
        }
        if let ended { onEnd(ended.name, ended.attributes, ended.isError) }
    }
}
