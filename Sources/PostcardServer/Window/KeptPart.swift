#if Server
import PostcardForm

/// A part of a form that was read, described.
struct KeptPart: Sendable {
    let name: String
    let filename: String?
    let contentType: String?
    /// The header fields as they came.
    let fields: [(name: String, value: String)]
    /// Where the header begins, and where the content, counted from the start of the body.
    let headerOffset: Int64
    let offset: Int64
    var size: Int64 = 0
    /// The value of a text field, where it is short.
    var text: String?

    init(_ header: PartHeader, contentOffset: Int64) {
        name = header.name
        filename = header.filename
        contentType = header.contentType
        fields = header.fields
        headerOffset = header.offset
        offset = contentOffset
    }

    /// How many bytes the description has.
    var bytes: Int {
        fields.reduce(name.utf8.count + (filename?.utf8.count ?? 0) + (text?.utf8.count ?? 0)) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
    }
}
#endif
