/// Writes an encoded value as named parts of a form.
struct FieldWriter {
    let options: FormEncoder
    private(set) var form: MultipartForm

    /// The keys that lead to the value that is being written.
    private(set) var path: [String] = []

    mutating func write(_ root: EncodedValue) throws(FormEncodingError) {
        switch root.content {
        case .nothing: return
        case .object(let object): try write(object, named: "", depth: 0)
        case .text, .file, .list: throw .unnamedValue()
        case .contradiction: throw .contradictoryShapes(at: path)
        }
    }

    /// Writes a value as one part, or as several parts with nested names. `depth` is the number of keys in the name.
    private mutating func write(_ value: EncodedValue, named name: String, depth: Int) throws(FormEncodingError) {
        if depth > options.maximumDepth { throw .tooDeep(at: path, maximum: options.maximumDepth) }
        let count = form.parts.count
        switch value.content {
        case .nothing: break
        case .text(let text): form.append(text, named: name)
        case .file(let file): form.append(file, named: name)
        case .object(let object): try write(object, named: name, depth: depth)
        case .list(let list): try write(list, named: name, depth: depth)
        case .contradiction: throw .contradictoryShapes(at: path)
        }
        if value.isSentEmpty, form.parts.count == count { form.append("", named: name) }
    }

    private mutating func write(_ object: EncodedObject, named name: String, depth: Int) throws(FormEncodingError) {
        for key in object.keys {
            guard let value = object.values[key] else { continue }
            guard FieldName.isWritable(key) else { throw .invalidKey(key, in: path) }
            path.append(key)
            try write(value, named: FieldName.nested(key, in: name), depth: depth + 1)
            path.removeLast()
        }
    }

    private mutating func write(_ list: EncodedList, named name: String, depth: Int) throws(FormEncodingError) {
        let style = list.elements.allSatisfy(\.isSingle) ? options.listStyle : .indices
        for (index, element) in list.elements.enumerated() {
            let key = String(index)
            path.append(key)
            if element.isMissing { throw .emptyElement(at: path) }
            switch style {
            case .repeatedName: try write(element, named: name, depth: depth)
            case .emptyBrackets: try write(element, named: FieldName.nested("", in: name), depth: depth + 1)
            case .indices: try write(element, named: FieldName.nested(key, in: name), depth: depth + 1)
            }
            path.removeLast()
        }
    }
}

extension EncodedValue {
    fileprivate var isSingle: Bool {
        switch content {
        case .text, .file: true
        case .nothing, .object, .list, .contradiction: false
        }
    }

    /// Whether the value results in no fields. A list must not contain such a value, because later indices would shift.
    fileprivate var isMissing: Bool {
        switch content {
        case .nothing: true
        case .list(let list): list.elements.isEmpty
        case .text, .file, .object, .contradiction: false
        }
    }
}

extension MultipartForm {
    fileprivate mutating func append(_ file: FormFile, named name: String) {
        let content: FormPart.Content =
            switch file.content {
            case .bytes(let bytes): .bytes(bytes)
            case .file(let url): .file(url)
            }
        append(
            FormPart(
                name: name, filename: file.filename, contentType: file.contentType, content: content,
                metadata: file.metadata))
    }
}
