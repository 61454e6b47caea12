/// Rules for a form: the names of its fields and files, their number and size, and the allowed types and texts.
///
/// Both sides use the same rules. The sender calls ``check(_:)-(FormLayout)`` before sending, and the receiver uses a
/// ``FormRuleChecker`` while receiving. Both report the same ``FormProblem``.
///
/// ```swift
/// let rules = try FormRules(
///     fields: [
///         "name": FormRules.Field(atLeast: 1, maximumCharacters: 40),
///         "kind": FormRules.Field(oneOf: ["dog", "cat"]),
///     ],
///     files: [
///         "petImage": FormRules.File(atLeast: 1, atMost: 2, maximumBytes: 10_000_000, types: [.anyImage])
///     ])
/// try rules.check(form)
/// ```
///
/// The same rules as JSON, for ``init(json:)`` or any decoder:
///
/// ```json
/// {
///   "fields": {
///     "name": {"atLeast": 1, "maximumCharacters": 40},
///     "kind": {"oneOf": ["dog", "cat"]}
///   },
///   "files": {
///     "petImage": {"atLeast": 1, "atMost": 2, "maximumBytes": "10MB", "types": ["image/*"]}
///   }
/// }
/// ```
///
/// Rules that only have files refuse all text fields, and rules that only have fields refuse all files. ``otherParts``
/// can allow them:
///
/// ```swift
/// let photos = FormRules.File(atMost: 5, types: [.anyImage])
/// let rules = try FormRules(files: ["petImage": photos], otherParts: .allowed)
/// ```
///
/// Every key may be left out, and an unknown key is an error. A number of bytes is a number, or a text such as `"10MB"`
/// (10,000,000) or `"10MiB"` (10,485,760).
///
/// Browsers send an empty file without a name for a file input that the user left empty. Such a part counts as not
/// sent.
public struct FormRules: Sendable, Hashable {
    /// The allowed text fields, by name.
    public let fields: [String: Field]

    /// The allowed files, by the name of their field.
    public let files: [String: File]

    /// The maximum number of bytes of all files together; `nil` if only the receiver's limits apply.
    public let maximumBytesOfAllFiles: Int64?

    /// The rule for parts with names outside of the rules. Defaults to refusing them.
    public let otherParts: OtherParts

    /// The rule for parts with names outside of the rules.
    public enum OtherParts: String, Sendable, Hashable, Codable, CaseIterable {
        /// Other parts are refused, which is the default.
        case refused
        /// Other parts are allowed, and only the limit for all files applies to them. A text field with the name of a
        /// file in the rules is still refused, and so is a file with the name of a text field.
        case allowed
    }

    /// Makes rules.
    ///
    /// - Throws: ``FormRulesError`` if no form can meet the rules.
    public init(
        fields: [String: Field] = [:], files: [String: File] = [:], maximumBytesOfAllFiles: Int64? = nil,
        otherParts: OtherParts = .refused
    ) throws(FormRulesError) {
        self.fields = fields
        self.files = files
        self.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        self.otherParts = otherParts
        try validate()
    }
}

extension FormRules {
    /// The rule for a text field.
    public struct Field: Sendable, Hashable {
        /// The minimum number of fields with the rule's name.
        public var atLeast: Int

        /// The maximum number of fields with the rule's name. Defaults to 1, because a repeated field is usually a
        /// mistake, or to `atLeast` if that is more.
        public var atMost: Int

        /// The minimum number of characters in the value. As in JSON Schema, a character is a Unicode scalar, so a
        /// visible character may count several times. Bytes are not counted: some languages need more for a character.
        public var minimumCharacters: Int

        /// The maximum number of characters in the value; `nil` if only the receiver's limit applies. Defaults to
        /// ``defaultMaximumWithPattern`` with a pattern, because matching takes time.
        public var maximumCharacters: Int?

        /// The pattern that the whole value must match.
        public var pattern: TextPattern?

        /// The allowed values, which are compared byte by byte in UTF-8.
        public var oneOf: [String]?

        /// The default maximum number of characters in a value with a pattern: 1,000.
        public static let defaultMaximumWithPattern = 1000

        /// Makes a rule for a text field. A rule for characters, a pattern or values requires UTF-8.
        public init(
            atLeast: Int = 0, atMost: Int? = nil, minimumCharacters: Int = 0, maximumCharacters: Int? = nil,
            pattern: TextPattern? = nil, oneOf: [String]? = nil
        ) {
            self.atLeast = atLeast
            self.atMost = atMost ?? max(1, atLeast)
            self.minimumCharacters = minimumCharacters
            self.maximumCharacters =
                maximumCharacters ?? (pattern == nil ? nil : max(Self.defaultMaximumWithPattern, minimumCharacters))
            self.pattern = pattern
            self.oneOf = oneOf
        }
    }

    /// The rule for a file.
    public struct File: Sendable, Hashable {
        /// The minimum number of files with the rule's name.
        public var atLeast: Int

        /// The maximum number of files with the rule's name. Defaults to 1, or to `atLeast` if that is more.
        public var atMost: Int

        /// The minimum size of each file, in bytes.
        public var minimumBytes: Int64

        /// The maximum size of each file, in bytes; `nil` if only the receiver's limit applies.
        public var maximumBytes: Int64?

        /// The accepted media types, such as `["image/jpeg", "video/*"]`; `nil` for all.
        ///
        /// The part's Content-Type must be an accepted type, and the first 32 bytes must not contradict it. Bytes of a
        /// known format must show an accepted type, or the container of the claimed type. If the format of the bytes is
        /// unknown, the claimed type must be one without a recognizable format. A picture that only a wildcard accepts
        /// must be recognized. SVG can run scripts, so it must be listed by name. Later bytes are not checked, so the
        /// file may still not be a picture.
        public var types: [MediaRange]?

        /// Makes a rule for a file.
        public init(
            atLeast: Int = 0, atMost: Int? = nil, minimumBytes: Int64 = 0, maximumBytes: Int64? = nil,
            types: [MediaRange]? = nil
        ) {
            self.atLeast = atLeast
            self.atMost = atMost ?? max(1, atLeast)
            self.minimumBytes = minimumBytes
            self.maximumBytes = maximumBytes
            self.types = types
        }
    }
}

extension FormRules {
    /// Throws if no form can meet the rules. The order of the checks is fixed, so the same rules give the same error.
    func validate() throws(FormRulesError) {
        for (name, field) in fields.sorted(by: { $0.key < $1.key }) {
            try Self.check(name: name, in: "fields")
            do { try field.validate() } catch { throw error.within(["fields", name]) }
        }
        for (name, file) in files.sorted(by: { $0.key < $1.key }) {
            try Self.check(name: name, in: "files")
            do { try file.validate() } catch { throw error.within(["files", name]) }
        }
        if let maximumBytesOfAllFiles, maximumBytesOfAllFiles < 0 {
            throw .negative("maximumBytesOfAllFiles")
        }
    }

    private static func check(name: String, in place: String) throws(FormRulesError) {
        if name.isEmpty {
            throw FormRulesError(
                .invalidValue, "A name is empty.", at: [place], advice: "Write the name that the part is sent with.")
        }
    }
}

extension FormRules.Field {
    fileprivate func validate() throws(FormRulesError) {
        try FormRulesError.checkCounts(atLeast: atLeast, atMost: atMost)
        if minimumCharacters < 0 { throw .negative("minimumCharacters") }
        if let maximumCharacters {
            if maximumCharacters < 0 { throw .negative("maximumCharacters") }
            if maximumCharacters < minimumCharacters {
                throw .contradiction("maximumCharacters", below: "minimumCharacters")
            }
        }
        if pattern != nil, maximumCharacters == nil {
            throw FormRulesError(
                .invalidValue, "A pattern is only safe with a maximum length.", at: ["maximumCharacters"],
                advice: "Say how many characters the value may have.")
        }
        if let oneOf { try validate(oneOf) }
    }

    private func validate(_ values: [String]) throws(FormRulesError) {
        if values.isEmpty {
            throw FormRulesError(
                .contradiction, "No value is allowed.", at: ["oneOf"], advice: "List the values, or leave the key out.")
        }
        for (index, value) in values.enumerated() {
            let count = value.unicodeScalars.count
            let fits =
                count >= minimumCharacters && count <= maximumCharacters ?? .max
                && pattern?.matches(value) ?? true
            if !fits {
                throw FormRulesError(
                    .contradiction, "The value breaks the rules beside it.", at: ["oneOf", "\(index)"],
                    advice: "Leave the value out, or change the pattern and the lengths.")
            }
        }
    }
}

extension FormRules.File {
    fileprivate func validate() throws(FormRulesError) {
        try FormRulesError.checkCounts(atLeast: atLeast, atMost: atMost)
        if minimumBytes < 0 { throw .negative("minimumBytes") }
        if let maximumBytes {
            if maximumBytes < 0 { throw .negative("maximumBytes") }
            if maximumBytes < minimumBytes { throw .contradiction("maximumBytes", below: "minimumBytes") }
        }
        if let types, types.isEmpty {
            throw FormRulesError(
                .contradiction, "No type is accepted.", at: ["types"], advice: "List the types, or leave the key out.")
        }
    }
}

extension FormRulesError {
    fileprivate static func checkCounts(atLeast: Int, atMost: Int) throws(FormRulesError) {
        if atLeast < 0 { throw .negative("atLeast") }
        if atMost < 1 {
            throw FormRulesError(
                .contradiction, "None may be sent.", at: ["atMost"],
                advice: "Write 1 or more, or leave the name out of the rules if none may be sent.")
        }
        if atMost < atLeast { throw .contradiction("atMost", below: "atLeast") }
    }

    fileprivate static func negative(_ key: String) -> FormRulesError {
        FormRulesError(.invalidValue, "It is below 0.", at: [key], advice: "Write 0 or more, or leave the key out.")
    }

    fileprivate static func contradiction(_ key: String, below other: String) -> FormRulesError {
        FormRulesError(.contradiction, "It is less than \(other).", at: [key], advice: "Raise it, or lower \(other).")
    }
}
