extension FormSizeLimits {
    /// The limits that rules set; none without rules.
    public init(_ rules: FormRules?) {
        self.init(
            maximumBytesOfAllFiles: rules?.maximumBytesOfAllFiles,
            maximumBytesByName: rules?.files.compactMapValues(\.maximumBytes) ?? [:])
    }

    /// The limits that a form exceeds, without the others; `nil` if it exceeds none.
    package func exceeded(by layout: FormLayout) -> FormSizeLimits? {
        let files = layout.parts.filter { $0.filename != nil }
        func isExceeded(_ limit: Int64?, by bytes: Int64?) -> Bool { limit.map { $0 >= 0 && $0 < bytes ?? 0 } ?? false }
        var exceeded = FormSizeLimits()
        if isExceeded(maximumBodyBytes, by: layout.contentLength) { exceeded.maximumBodyBytes = maximumBodyBytes }
        if isExceeded(maximumFileBytes, by: files.compactMap(\.contentLength).max()) {
            exceeded.maximumFileBytes = maximumFileBytes
        }
        if isExceeded(maximumBytesOfAllFiles, by: files.reduce(0) { $0.addingUpTo($1.contentLength ?? 0) }) {
            exceeded.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        }
        exceeded.maximumBytesByName = maximumBytesByName.filter { name, limit in
            isExceeded(limit, by: files.filter { $0.name == name }.compactMap(\.contentLength).max())
        }
        return exceeded == FormSizeLimits() ? nil : exceeded
    }
}

extension Int64 {
    /// Adds a number of bytes. More than can be counted is as many as can be counted.
    func addingUpTo(_ other: Int64) -> Int64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}
