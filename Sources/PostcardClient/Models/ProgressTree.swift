import Foundation

/// A progress with a child for each part of a form, whose unit is the byte, and one unit for the server's answer: a
/// progress that is finished cannot be cancelled any more, and an upload that waits for its answer can.
struct ProgressTree {
    private let root: Progress
    private var children: [Progress]?

    init(_ root: Progress) {
        self.root = root
        root.kind = .file
    }

    /// Brings the tree up to what is known. The children are made at the first step, which knows the parts.
    mutating func note(_ progress: UploadProgress) {
        let parts = progress.parts
        for (child, part) in zip(children ?? addChildren(for: parts), parts) { update(child, with: part) }
        root.setUserInfoObject(progress.bytesPerSecond.map { Int(clamping: Int64($0)) }, forKey: .throughputKey)
        root.setUserInfoObject(progress.timeRemaining.map { $0 / .seconds(1) }, forKey: .estimatedTimeRemainingKey)
    }

    /// The server has answered, perhaps before it had all of the form: what is left of the children would come on top.
    func finish() {
        for child in children ?? [] where !child.isFinished {
            child.totalUnitCount = max(child.totalUnitCount, child.completedUnitCount, 1)
            child.completedUnitCount = child.totalUnitCount
        }
        root.completedUnitCount = root.totalUnitCount
    }

    private mutating func addChildren(for parts: [UploadProgress.Part]) -> [Progress] {
        let pending = parts.map { units(of: $0) ?? 1 }
        root.totalUnitCount = pending.reduce(1, +)
        let added = zip(parts, pending).map { part, pending in
            let child = Progress(totalUnitCount: units(of: part) ?? -1)
            child.kind = .file
            root.addChild(child, withPendingUnitCount: pending)
            return child
        }
        children = added
        return added
    }

    /// It never falls: what a retry sends again is told once.
    private func update(_ child: Progress, with part: UploadProgress.Part) {
        guard !child.isFinished else { return }
        if let units = units(of: part), child.totalUnitCount != units { child.totalUnitCount = units }
        let sent = part.totalBytes == 0 && part.hasBegun ? 1 : part.bytesSent
        if sent > child.completedUnitCount { child.completedUnitCount = sent }
    }

    /// A part without content counts as one byte: a progress of nothing would never be at its end.
    private func units(of part: UploadProgress.Part) -> Int64? {
        part.totalBytes.map { max($0, 1) }
    }
}
