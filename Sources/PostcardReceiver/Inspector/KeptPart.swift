import PostcardForm

/// A part of a form that was read, described.
struct KeptPart: Sendable {
    let name: String
    let filename: String?
    let contentType: String?
    /// Whether its name says that its content is a secret.
    let isSecret: Bool
    /// The header fields in their order, secrets masked.
    let fields: [(name: String, value: String)]
    /// Where the header begins, and where the content, counted from the start of the body.
    let headerOffset: Int64
    let offset: Int64
    var size: Int64 = 0
    /// The value of a text field that is short and no secret.
    private(set) var text: String?

    init(_ header: PartHeader, contentOffset: Int64) {
        name = header.name
        filename = header.filename
        contentType = header.contentType
        isSecret = Secrets.isSecret(header.name)
        fields = header.fields.map { ($0.name, Secrets.masked($0.value, of: $0.name)) }
        headerOffset = header.offset
        offset = contentOffset
    }

    /// Keeps the value of a text field.
    mutating func keep(_ value: [UInt8]) {
        let isShown = !isSecret && !SecretScan.isJSONWithSecrets(value[...])
        text = isShown ? String(validating: value, as: UTF8.self) : Secrets.mask
    }

    /// How many bytes the description has.
    var bytes: Int {
        fields.reduce(name.utf8.count + (filename?.utf8.count ?? 0) + (text?.utf8.count ?? 0)) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
    }
}
