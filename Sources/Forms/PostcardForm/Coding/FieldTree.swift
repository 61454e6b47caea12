/// The fields of a form, nested by their names: `pet[name]` is inside `pet`.
///
/// Contradictory fields become an error only when they are read, so unused fields do no harm.
struct FieldTree {
    /// A node of the tree, for one key of a name.
    private struct Node {
        /// The indices of the parts whose name ends in this node's key.
        var parts: [Int] = []
        /// The keys below this node's key, in the order of the form.
        var keys: [String] = []
        var children: [String: Int] = [:]
    }

    /// A position in the tree: a node, a single part, or none.
    enum Place: Hashable {
        /// No field of the form has this name.
        case absent
        case node(Int)
        /// The part with this index, as an element of a list.
        case part(Int)
    }

    enum Shape {
        case absent
        /// The indices of the parts: one part, or several parts with the same name.
        case parts([Int])
        /// The keys of nested fields.
        case keys([String])
        case contradiction
    }

    /// An element of a list, and its key in the form's names.
    struct Element {
        let place: Place
        let key: String?
    }

    /// The index of the node for the form as a whole.
    static let root = 0

    private let form: ReceivedForm
    private var nodes = [Node()]

    /// Sorts the fields of a form into the tree. The work is linear in the length of their names. Throws
    /// ``FormDecodingError`` if one name, or all names together, exceed a limit.
    init(_ form: ReceivedForm, maximumDepth: Int, maximumKeys: Int) throws(FormDecodingError) {
        self.form = form
        for (index, part) in form.parts.enumerated() where !part.isUnchosenFile {
            guard let keys = FieldName.keys(of: part.header.name, maximum: maximumDepth) else {
                throw .tooDeep(part.header.name, maximum: maximumDepth, part: part)
            }
            var node = FieldTree.root
            for key in keys {
                if let child = nodes[node].children[key] {
                    node = child
                    continue
                }
                guard nodes.count <= maximumKeys else { throw .tooManyKeys(maximum: maximumKeys, part: part) }
                nodes[node].keys.append(key)
                nodes[node].children[key] = nodes.count
                node = nodes.count
                nodes.append(Node())
            }
            nodes[node].parts.append(index)
        }
    }

    func part(_ index: Int) -> ReceivedForm.Part { form.parts[index] }

    func shape(at place: Place) -> Shape {
        switch place {
        case .absent: return .absent
        case .part(let index): return .parts([index])
        case .node(let index):
            let node = nodes[index]
            if node.keys.isEmpty { return node.parts.isEmpty ? .absent : .parts(node.parts) }
            return node.parts.isEmpty ? .keys(node.keys) : .contradiction
        }
    }

    /// The place of a key that is nested directly in another place.
    func place(of key: String, in place: Place) -> Place {
        guard case .node(let index) = place, let child = nodes[index].children[key] else { return .absent }
        return .node(child)
    }

    /// The parts at a place in the tree, without those of nested fields.
    func parts(at place: Place) -> [ReceivedForm.Part] {
        switch place {
        case .absent: []
        case .part(let index): [part(index)]
        case .node(let index): nodes[index].parts.map(part)
        }
    }

    func place(at codingPath: [any CodingKey]) -> Place {
        codingPath.reduce(.node(FieldTree.root)) { place, key in
            let child = self.place(of: key.stringValue, in: place)
            guard child == .absent, let index = key.intValue, case .elements(let elements) = list(at: place),
                elements.indices.contains(index)
            else { return child }
            return elements[index].place
        }
    }

    /// The contents of a place in the tree, read as a list.
    enum List {
        case elements([Element])
        /// A nested field has a key that is not an index.
        case key(String)
        /// Fields such as `pets[][name]` do not show to which element of the list they belong.
        case unassignable
        case contradiction
    }

    /// Reads a place in the tree as a list, in any style.
    func list(at place: Place) -> List {
        switch shape(at: place) {
        case .absent:
            return .elements([])
        case .parts(let parts):
            return .elements(parts.map { Element(place: .part($0), key: nil) })
        case .contradiction:
            return .contradiction
        case .keys([""]):
            return switch shape(at: self.place(of: "", in: place)) {
            case .parts(let parts): .elements(parts.map { Element(place: .part($0), key: nil) })
            case .absent, .keys, .contradiction: .unassignable
            }
        case .keys(let keys):
            return indexed(keys, in: place)
        }
    }

    /// The elements of a list with indices, sorted by index.
    private func indexed(_ keys: [String], in place: Place) -> List {
        if keys.contains("") { return .contradiction }
        var elements: [(index: Int, key: String)] = []
        elements.reserveCapacity(keys.count)
        for key in keys {
            guard let index = FieldName.index(key) else { return .key(key) }
            elements.append((index, key))
        }
        // Most senders write the indices in ascending order, so sorting is rarely needed.
        if zip(elements, elements.dropFirst()).contains(where: { $0.index > $1.index }) {
            elements.sort { $0.index < $1.index }
        }
        return .elements(elements.map { Element(place: self.place(of: $0.key, in: place), key: $0.key) })
    }
}

extension ReceivedForm.Part {
    /// Whether the part is an empty file without a name, which browsers send for a file input without a file.
    fileprivate var isUnchosenFile: Bool {
        guard header.filename == "", case .bytes(let bytes) = content else { return false }
        return bytes.isEmpty
    }
}
