import Crypto
import HTTPTypes
import NIOCore
import PostcardWire

/// Compares a body with the digests in the head of its request (RFC 9530).
struct DigestCheck {
    private let announced: [(name: HTTPField.Name, digest: BodyDigest)]
    /// Whether the response must contain the digest of the form.
    let isWanted: Bool
    private var hash = SHA256()
    /// The number of bytes added so far.
    private(set) var byteCount: Int64 = 0

    /// Makes the check of a body; `nil` if there is no digest to compare or to send. `names` are the digest fields that
    /// apply to the bytes of this body. Throws a problem if a field is malformed.
    init?(of request: IncomingRequest, _ names: [HTTPField.Name]) throws(UploadProblem) {
        var announced: [(name: HTTPField.Name, digest: BodyDigest)] = []
        for name in names {
            switch request.headers.digest(name) {
            case .none: continue
            case .digest(let digest): announced.append((name, digest))
            case .malformed: throw .malformedDigest(name.rawName)
            }
        }
        isWanted = names.contains(.reprDigest) && request.headers.wantsDigest(.wantReprDigest)
        guard isWanted || !announced.isEmpty else { return nil }
        self.announced = announced
    }

    /// Whether the bytes are compared with a digest.
    var isComparing: Bool { !announced.isEmpty }

    mutating func add(_ bytes: ByteBuffer) {
        byteCount += Int64(bytes.readableBytes)
        bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
    }

    var digest: BodyDigest? { BodyDigest(hash.finalize()) }

    /// The name of the digest field that does not match the bytes; `nil` if all fields match.
    var mismatch: HTTPField.Name? {
        guard !announced.isEmpty else { return nil }
        let digest = digest
        return announced.first { $0.digest != digest }?.name
    }

    /// Compares all bytes of a form with its digests. Throws a problem if the bytes do not match a digest.
    func check() throws(UploadProblem) {
        if let field = mismatch { throw .digestMismatch(field.rawName, of: byteCount, at: nil) }
    }
}
