import Crypto
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadVerification {
    /// Compares with the record that `postcard serve` answers: the size and the SHA-256 of every file, and the
    /// texts, in the order in which they were sent.
    ///
    /// Where a field was sent with a type of its own, such as another charset, and the record shows that it is not
    /// UTF-8, its bytes are not known and not compared. An answer that is no such record ends the upload with
    /// ``UploadError/Code/decoding``.
    public static let record = UploadVerification { parts, response in
        try response.decode(Record.self).differences(from: parts)
    }

    /// What of the receiver's record says which bytes came.
    private struct Record: Decodable {
        struct Field: Decodable {
            let value: String
        }

        struct File: Decodable {
            let size: Int64
            let sha256: String
        }

        let fields: [Field]
        let files: [File]

        /// Names are not compared: a receiver shows them as it reads them, without the path of a file and with
        /// escapes undone that a sender may have meant as they stood.
        func differences(from parts: [SentPart]) -> [SentPart] {
            var fields = fields[...]
            var files = files[...]
            return parts.filter { part in
                if part.isFile {
                    guard let file = files.popFirst() else { return true }
                    return file.size != part.size || file.sha256.lowercased() != part.sha256
                }
                guard let field = fields.popFirst() else { return true }
                // Bytes that are not UTF-8 are U+FFFD in a record.
                if !part.isText, field.value.unicodeScalars.contains("\u{FFFD}") { return false }
                return SHA256.hash(data: Data(field.value.utf8)).hexadecimal != part.sha256
            }
        }
    }
}
