package import PostcardTestSupport
import Synchronization

/// Bytes of a form at which its connection is reset, each once, whichever request it is that gets there.
package final class Cuts: Sendable {
    private let offsets: Mutex<[Int]>

    package init(at offsets: some Sequence<Int>) {
        self.offsets = Mutex(Set(offsets).sorted())
    }

    /// At places that chance decides, in a form of a length.
    package convenience init(_ count: Int, in length: Int) {
        var offsets: Set<Int> = []
        while offsets.count < count { offsets.insert(.random(in: 1..<length)) }
        self.init(at: offsets)
    }

    /// How many are still to come.
    package var left: Int { offsets.withLock { $0.count } }

    /// What befalls a request: appends are cut at the next of the places.
    package func fault(of request: ProxyRequest) -> Fault {
        guard request.method == "PATCH", let offset = request["Upload-Offset"].flatMap(Int.init) else { return .none }
        return offsets.withLock { offsets in
            guard let index = offsets.firstIndex(where: { $0 > offset }) else { return .none }
            return .reset(atByte: offsets.remove(at: index) - offset)
        }
    }
}

/// Sees that progress never falls.
package final class ProgressWitness: Sendable {
    private let state = Mutex((last: Int64(-1), hasFallen: false))

    package init() {}

    package var last: Int64 { state.withLock { $0.last } }
    package var hasFallen: Bool { state.withLock { $0.hasFallen } }

    package func note(_ bytesSent: Int64) {
        state.withLock { state in
            if bytesSent < state.last { state.hasFallen = true }
            state.last = bytesSent
        }
    }
}
