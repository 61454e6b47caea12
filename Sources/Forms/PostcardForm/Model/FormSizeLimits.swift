/// How large a form and its files may be for a server, as far as a client knows.
public struct FormSizeLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes; `nil` if unknown.
    public var maximumBodyBytes: Int64?

    /// The maximum size of any file, in bytes; `nil` if unknown.
    public var maximumFileBytes: Int64?

    /// The maximum size of all files together, in bytes; `nil` if unknown.
    public var maximumBytesOfAllFiles: Int64?

    /// The maximum size of each file, in bytes, by the name of its field.
    public var maximumBytesByName: [String: Int64]

    /// Makes limits. By default none is known.
    public init(
        maximumBodyBytes: Int64? = nil, maximumFileBytes: Int64? = nil, maximumBytesOfAllFiles: Int64? = nil,
        maximumBytesByName: [String: Int64] = [:]
    ) {
        self.maximumBodyBytes = maximumBodyBytes
        self.maximumFileBytes = maximumFileBytes
        self.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        self.maximumBytesByName = maximumBytesByName
    }

    /// The maximum size of a file, in bytes, by the name of its field; `nil` if no limit is known.
    public func maximumBytes(ofFileNamed name: String) -> Int64? {
        Self.smaller(maximumBytesByName[name], maximumFileBytes)
    }

    /// Both limits at once: the smaller of each.
    package func lowered(by other: FormSizeLimits) -> FormSizeLimits {
        FormSizeLimits(
            maximumBodyBytes: Self.smaller(maximumBodyBytes, other.maximumBodyBytes),
            maximumFileBytes: Self.smaller(maximumFileBytes, other.maximumFileBytes),
            maximumBytesOfAllFiles: Self.smaller(maximumBytesOfAllFiles, other.maximumBytesOfAllFiles),
            maximumBytesByName: maximumBytesByName.merging(other.maximumBytesByName) { min($0, $1) })
    }

    private static func smaller(_ one: Int64?, _ other: Int64?) -> Int64? { [one, other].compactMap(\.self).min() }
}
