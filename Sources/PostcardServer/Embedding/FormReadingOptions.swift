public import PostcardForm

/// How a form is read that a handler takes whole.
public struct FormReadingOptions: Sendable {
    /// How much of everything is taken.
    public var limits = FormLimits()

    /// Which fields and files may come; whatever is well formed unless set.
    public var rules: FormRules?

    /// The bytes of all texts together, which are held in memory: 8 MiB unless set.
    public var maximumTextBytes = 8 << 20

    /// The bytes of files that are held in memory: 1 MiB for all files of the form unless set. A file that goes beyond
    /// is written to disk.
    public var maximumFileBytesInMemory = 1 << 20

    /// How the fields become a value.
    public var decoder = FormDecoder()

    /// The defaults.
    public init() {}
}
