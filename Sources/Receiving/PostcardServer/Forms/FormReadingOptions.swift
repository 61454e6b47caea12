public import PostcardForm

/// How a handler decodes a form.
public struct FormReadingOptions: Sendable {
    /// The limits of a form and its parts.
    public var limits = FormLimits()

    /// Which fields and files a form may have. Defaults to `nil`: any.
    public var rules: FormRules?

    /// The maximum size of all text fields together, in bytes. They are held in memory. Defaults to 8 MiB.
    public var maximumTextBytes = 8 << 20

    /// How many bytes of all files together are held in memory. A file that exceeds it is written to disk. Defaults to
    /// 1 MiB.
    public var maximumFileBytesInMemory = 1 << 20

    /// Decodes the value from the fields.
    public var decoder = FormDecoder()

    /// Makes options with the default values.
    public init() {}
}
