import PostcardStore

/// The keys of the store's objects, below the bucket's prefix.
enum ObjectName {
    static let records = "records/"
    static let files = "files/"
    static let keys = "keys/"
    static let unfinished = S3Bucket.secretFolder
    static let probes = "probes/"
    /// The folder of files that clients send directly to the bucket, until the files become records.
    static let arriving = "arriving/"

    // MARK: - Records

    /// The key of a record. Listings are in the order of keys, so the newest record must have the first key.
    static func record(_ id: UploadID) -> String { records + UploadID.inverted(id.text) }

    static func id(ofRecord key: String) -> UploadID? {
        guard key.hasPrefix(records) else { return nil }
        return UploadID(UploadID.inverted(key.dropFirst(records.count)))
    }

    // MARK: - Files

    /// The folder of an upload's files. Its name is only the random part of the upload's identifier, because the time
    /// in the identifier changes at the commit.
    static func folder(of id: UploadID) -> String { "\(files)\(id.randomText)/" }

    static func file(_ index: Int, of id: UploadID) -> String { "\(folder(of: id))\(index)" }

    /// The key of the app's own response to an upload.
    static func response(to id: UploadID) -> String { folder(of: id) + "answer" }

    /// The key of an object with bytes of an incomplete file that were set aside to free memory. `number` begins at 0.
    static func aside(_ number: Int, ofFile key: String) -> String { "\(key).\(number)" }
    static func isAside(_ key: String) -> Bool { key.contains(".") }

    /// The random part of an upload's identifier, from the key of one of the upload's files.
    static func randomText(ofFile key: String) -> Substring? {
        key.split(separator: "/").dropFirst().first
    }

    // MARK: - Keys

    static func folder(of digest: String) -> String { "\(keys)\(digest)/" }

    /// The key of the object with the record of an idempotency key. After a deletion, the next generation is used.
    static func key(_ digest: String, generation: Int) -> String { folder(of: digest) + padded(Int64(generation), 8) }

    /// The generation in the key of an object; `nil` if it has none, or if no higher generation is possible.
    static func generation(ofKey key: String) -> Int? {
        key.split(separator: "/").last.flatMap { Int32($0) }.flatMap { $0 < .max ? Int($0) : nil }
    }

    // MARK: - Unfinished uploads

    static func folder(ofUnfinished id: String) -> String { "\(unfinished)\(id)/" }
    static func form(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "form" }
    /// The key of the object with the outcome of an unfinished upload.
    static func end(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "end" }

    static func chunks(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "chunks/" }
    static func chunk(at offset: Int64, ofUnfinished id: String) -> String {
        chunks(ofUnfinished: id) + padded(offset, 20)
    }
    static func offset(ofChunk key: String) -> Int64? { number(in: "chunks", key) }

    /// The folder of objects with bytes of an unfinished upload. An empty chunk names the object that has its bytes.
    static func heldFolder(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "held/" }
    static func held(_ name: String, ofUnfinished id: String) -> String { heldFolder(ofUnfinished: id) + name }

    static func lengths(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "length/" }
    static func length(_ length: Int64, ofUnfinished id: String) -> String {
        lengths(ofUnfinished: id) + padded(length, 20)
    }
    static func length(ofKey key: String) -> Int64? { number(in: "length", key) }

    /// The identifier of the upload that an object belongs to, and the kind of object, such as `form` or `chunks`.
    static func unfinished(_ key: String) -> (id: Substring, part: Substring)? {
        let names = key.split(separator: "/")
        return names.count > 2 ? (names[1], names[2]) : nil
    }

    private static func number(in part: Substring, _ key: String) -> Int64? {
        let names = key.split(separator: "/")
        guard names.count == 4, names[2] == part, let number = Int64(names[3]), ListedObject.sizes.contains(number)
        else {
            return nil
        }
        return number
    }

    // MARK: - Texts

    static func random(_ surroundings: Surroundings) -> String {
        var random = surroundings.generator
        return String(UploadID(milliseconds: 0, using: &random).randomText)
    }

    /// Whether a text looks like a name from ``random(_:)``.
    static func isRandom(_ text: some StringProtocol) -> Bool {
        UploadID(String(repeating: "0", count: 10) + text) != nil
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }
}
