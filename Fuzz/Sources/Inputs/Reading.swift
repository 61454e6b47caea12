public import PostcardForm

/// What a parser reports about a body, in any chunks: adjacent bytes are joined.
public enum Reading: Equatable {
    case part(name: [UInt8], filename: [UInt8]?, contentType: String?, offset: Int64, warnings: [FormProblem])
    case content([UInt8])
    case partEnded
    case complete
    case problem(FormProblem)

    /// Feeds chunks to a parser.
    public static func all(
        of chunks: some Sequence<ArraySlice<UInt8>>, boundary: String, limits: FormLimits
    ) -> [Reading] {
        var readings: [Reading] = []
        do throws(FormProblem) {
            var parser = try FormParser(boundary: boundary, limits: limits)
            for chunk in chunks {
                var position = 0
                while let event = try parser.nextEvent(in: chunk.span.bytes, at: &position) {
                    readings.append(event, of: chunk, heldBytes: parser.heldBytes)
                }
                if position != chunk.count { finding("the parser left \(chunk.count - position) bytes of a chunk") }
            }
            try parser.finish()
            readings.append(.complete)
        } catch {
            readings.append(.problem(error))
        }
        return readings
    }
}

extension [Reading] {
    fileprivate mutating func append(_ event: FormEvent, of chunk: ArraySlice<UInt8>, heldBytes: [UInt8]) {
        switch event {
        case .partBegan(let header):
            append(
                .part(
                    name: [UInt8](header.name.utf8), filename: header.filename.map { [UInt8]($0.utf8) },
                    contentType: header.contentType, offset: header.offset, warnings: header.warnings))
        case .bytes(.chunk(let range)):
            append(content: chunk[(chunk.startIndex + range.lowerBound)..<(chunk.startIndex + range.upperBound)])
        case .bytes(.held(let range)):
            append(content: heldBytes[range])
        case .partEnded:
            append(.partEnded)
        }
    }

    private mutating func append(content: ArraySlice<UInt8>) {
        if content.isEmpty { finding("the parser handed on no bytes") }
        if case .content(let before) = last {
            self[count - 1] = .content(before + content)
        } else {
            append(.content([UInt8](content)))
        }
    }
}
