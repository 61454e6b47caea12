#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes one value, wherever it stands.
struct ValueDecoder: Decoder {
    let fields: FieldTree
    let options: FormDecoder
    let place: FieldTree.Place
    let codingPath: [any CodingKey]

    /// Whether an empty text is `nil` here: everywhere but for an optional `String`.
    var emptyIsNil = true

    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(KeyedValueDecoder(decoder: self, keys: try keys()))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        UnkeyedValueDecoder(decoder: self, elements: try elements())
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// The decoder of a value within this one.
    ///
    /// A name is never deeper than the limit, but a type that holds itself would go on below where fields end.
    func nested(_ place: FieldTree.Place, at key: any CodingKey) throws -> ValueDecoder {
        guard codingPath.count <= options.maximumDepth else {
            throw failure(.tooDeep(path, maximum: options.maximumDepth, part: nil))
        }
        return ValueDecoder(fields: fields, options: options, place: place, codingPath: codingPath + [key])
    }

    /// The value's name, as the form writes it.
    var path: String { FieldName.name(of: codingPath.map(\.stringValue)) }

    /// Whether the field is an input that was left empty.
    var isEmptyText: Bool {
        guard case .parts(let parts) = fields.shape(at: place), parts.count == 1 else { return false }
        let part = fields.part(parts[0])
        guard !part.header.isFile, case .bytes(let bytes) = part.content else { return false }
        return bytes.isEmpty
    }

    /// An error about a field, as the standard library's.
    func failure(_ error: FormDecodingError, type: any Any.Type = Any.self) -> DecodingError {
        DecodingError(error, type: type, codingPath: codingPath)
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let value = try decodeKnown(type) { return value }
        var decoder = self
        decoder.emptyIsNil = type != String?.self
        return try Value(from: decoder)
    }

    /// Decodes what Foundation would encode in a way of its own.
    private func decodeKnown<Value>(_ type: Value.Type) throws -> Value? {
        switch type {
        case is Date.Type: try date() as? Value
        case is Data.Type: try data() as? Value
        case is URL.Type: try url() as? Value
        case is UUID.Type: try identifier() as? Value
        case is Decimal.Type: try decimal() as? Value
        case is FormFile.Type: try file() as? Value
        default: nil
        }
    }
}

// MARK: - Shapes

extension ValueDecoder {
    /// The keys of an object. One without any is sent as an empty text, or not at all.
    private func keys() throws -> [String] {
        switch fields.shape(at: place) {
        case .absent: return []
        case .keys([""]):
            throw failure(wrongShape("is a list, and keys are wanted.", fix: "Put a key in brackets behind the name."))
        case .keys(let keys) where keys.contains(""): throw failure(.contradictoryShapes(path))
        case .keys(let keys): return keys
        case .parts where isEmptyText: return []
        case .parts:
            throw failure(
                wrongShape("is a single value, and keys are wanted.", fix: "Put a key in brackets behind the name."))
        case .contradiction: throw failure(.contradictoryShapes(path))
        }
    }

    private func elements() throws -> [FieldTree.Element] {
        switch fields.list(at: place) {
        case .elements(let elements): return elements
        case .contradiction: throw failure(.contradictoryShapes(path))
        case .key(let key):
            throw failure(
                wrongShape(
                    "is a list, and its key \(key.prefix(20).debugDescription) is no index.",
                    fix: "Number the elements: [0], [1] and so on."))
        case .unassignable:
            throw failure(
                wrongShape(
                    "is a list of which it is not said what belongs to which element.",
                    fix: "Number the elements before their keys: [0][key], [1][key] and so on."))
        }
    }

    private func wrongShape(_ wrong: String, fix: String) -> FormDecodingError {
        if let part = fields.parts(at: place).first { return FormDecodingError(.wrongShape, part, wrong, fix: fix) }
        return FormDecodingError(.wrongShape, at: path, wrong, fix: fix)
    }

    /// The one part that stands here.
    func part(for type: any Any.Type) throws -> ReceivedForm.Part {
        switch fields.shape(at: place) {
        case .absent: throw failure(.missing(path), type: type)
        case .contradiction: throw failure(.contradictoryShapes(path), type: type)
        case .keys:
            throw failure(
                wrongShape(
                    path.isEmpty
                        ? "is a form, and a single value is wanted." : "has keys, and a single value is wanted.",
                    fix: path.isEmpty ? "Decode a type with properties." : "Write the name without brackets."),
                type: type)
        case .parts(let parts):
            guard parts.count == 1 else { throw failure(.repeated(path, count: parts.count), type: type) }
            return fields.part(parts[0])
        }
    }
}
