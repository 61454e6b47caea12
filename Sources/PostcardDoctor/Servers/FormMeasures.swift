/// How much of everything a form has.
struct FormMeasures {
    typealias Place = (offset: Int64, part: Int?)

    let bodySize: Int64
    let partCount: Int
    let parts: [Explanation.Part]

    /// Where the form goes over a limit; `nil` where it does not.
    func excess(over limit: ServerProfile.Limit) -> Place? {
        guard amount(limit.measure) > limit.maximum else { return nil }
        return switch limit.measure {
        case .bodyBytes, .textBytes, .bytesBeforeFile: (0, nil)
        case .partCount: place(ofPart: Int(clamping: limit.maximum))
        case .fileBytes: largest(isFile: true).map { place(ofPart: $0) }
        case .fieldBytes: largest(isFile: false).map { place(ofPart: $0) }
        case .partHeaderBytes: partWithLargestHeader.map { place(ofPart: $0) }
        case .fileCount: place(ofPart: indices(areFiles: true)[Int(clamping: limit.maximum)])
        case .fieldCount: place(ofPart: indices(areFiles: false)[Int(clamping: limit.maximum)])
        }
    }

    /// How much there is of what a limit counts, in words.
    func phrase(_ limit: ServerProfile.Limit) -> String {
        let amount = amount(limit.measure)
        // What is rounded to the limit is told exactly.
        let size =
            Self.size(amount) == Self.size(limit.maximum) ? Self.exactSize(amount) : Self.size(amount)
        return switch limit.measure {
        case .bodyBytes: "the body has \(size)"
        case .fileBytes: "a file has \(size)"
        case .fieldBytes: "a field has \(size)"
        case .textBytes: "the fields have \(size) together"
        case .partHeaderBytes: "a part's header has \(size)"
        case .bytesBeforeFile: "\(size) stand before it"
        case .partCount, .fileCount, .fieldCount: "the form has \(amount)"
        }
    }

    private func amount(_ measure: ServerProfile.Limit.Measure) -> Int64 {
        switch measure {
        case .bodyBytes: bodySize
        case .partCount: Int64(partCount)
        case .fileBytes: largest(isFile: true).map { parts[$0].size } ?? 0
        case .fieldBytes: largest(isFile: false).map { parts[$0].size } ?? 0
        case .fileCount: Int64(parts.count { $0.filename != nil })
        case .fieldCount: Int64(parts.count { $0.filename == nil })
        case .textBytes:
            parts.reduce(0) { $1.filename == nil ? $0 + $1.size + Int64($1.name.utf8.count) + 2 : $0 }
        case .partHeaderBytes: partWithLargestHeader.map { parts[$0].headerSize } ?? 0
        case .bytesBeforeFile: parts.first { $0.filename != nil }?.offset ?? 0
        }
    }

    private func indices(areFiles: Bool) -> [Int] {
        parts.indices.filter { (parts[$0].filename != nil) == areFiles }
    }

    private func largest(isFile: Bool) -> Int? {
        indices(areFiles: isFile).max { parts[$0].size < parts[$1].size }
    }

    private var partWithLargestHeader: Int? {
        parts.indices.max { parts[$0].headerSize < parts[$1].headerSize }
    }

    private func place(ofPart index: Int) -> Place {
        (parts.indices.contains(index) ? parts[index].offset : bodySize, index)
    }

    /// A number of bytes as settings have it.
    static func size(_ bytes: Int64) -> String {
        for (unit, factor) in [("GB", Int64(1 << 30)), ("MB", 1 << 20), ("KB", 1 << 10)]
        where bytes + factor / 20 >= factor {
            let tenths = (bytes * 10 + factor / 2) / factor
            return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return exactSize(bytes)
    }

    private static func exactSize(_ bytes: Int64) -> String { bytes == 1 ? "1 byte" : "\(bytes) bytes" }
}

extension Explanation.Part {
    /// The number of bytes that the part's header has with its blank line.
    fileprivate var headerSize: Int64 {
        headers.reduce(2) { $0 + Int64($1.name.utf8.count + ": ".utf8.count + $1.value.utf8.count + 2) }
    }
}

extension ServerProfile.Limit {
    /// The limit in words.
    var phrase: String {
        let size = FormMeasures.size(maximum)
        return switch measure {
        case .bodyBytes: "\(size) a body"
        case .fileBytes: "\(size) a file"
        case .fieldBytes: "\(size) a field"
        case .textBytes: "\(size) of fields together"
        case .partHeaderBytes: "\(size) a part's header"
        case .bytesBeforeFile: "\(size) before the file"
        case .fileCount: maximum == 1 ? "one file" : "\(maximum) files"
        case .fieldCount: "\(maximum) fields"
        case .partCount: "\(maximum) parts"
        }
    }
}
