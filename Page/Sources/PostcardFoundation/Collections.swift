// What the Doctor uses of _StringProcessing, which Embedded Swift does not have.

extension Collection where Element: Equatable {
    public func firstRange(of other: some Collection<Element>) -> Range<Index>? {
        guard let first = other.first else { return startIndex..<startIndex }
        var start = startIndex
        while start != endIndex {
            if self[start] == first {
                var end = start
                var isSame = true
                for element in other {
                    guard end != endIndex, self[end] == element else {
                        isSame = false
                        break
                    }
                    formIndex(after: &end)
                }
                if isSame { return start..<end }
            }
            formIndex(after: &start)
        }
        return nil
    }

    @_disfavoredOverload public func contains(_ other: some Collection<Element>) -> Bool {
        firstRange(of: other) != nil
    }

    public func ranges(of other: some Collection<Element>) -> [Range<Index>] {
        var ranges: [Range<Index>] = []
        var start = startIndex
        while let range = self[start...].firstRange(of: other), !range.isEmpty {
            ranges.append(range)
            start = range.upperBound
        }
        return ranges
    }

    @_disfavoredOverload public func split(
        separator: some Collection<Element>, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    )
        -> [SubSequence]
    {
        var pieces: [SubSequence] = []
        var start = startIndex
        var splits = 0
        while splits < maxSplits, let range = self[start...].firstRange(of: separator), !range.isEmpty {
            let piece = self[start..<range.lowerBound]
            if !piece.isEmpty || !omittingEmptySubsequences { pieces.append(piece) }
            start = range.upperBound
            splits += 1
        }
        let rest = self[start...]
        if !rest.isEmpty || !omittingEmptySubsequences { pieces.append(rest) }
        return pieces
    }

    public func trimmingPrefix(while predicate: (Element) -> Bool) -> SubSequence { drop(while: predicate) }
}

extension RangeReplaceableCollection where Element: Equatable {
    public func replacing(
        _ other: some Collection<Element>, with new: some Collection<Element>, maxReplacements: Int = .max
    )
        -> Self
    {
        var result = Self()
        var start = startIndex
        var count = 0
        while count < maxReplacements, let range = self[start...].firstRange(of: other), !range.isEmpty {
            result.append(contentsOf: self[start..<range.lowerBound])
            result.append(contentsOf: new)
            start = range.upperBound
            count += 1
        }
        result.append(contentsOf: self[start...])
        return result
    }
}
