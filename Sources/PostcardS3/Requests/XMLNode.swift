import Foundation
import PostcardFoundation

#if canImport(FoundationXML)
import FoundationXML
#endif

/// An element of a response of the store.
struct XMLNode: Sendable {
    let name: String
    var text = ""
    var children: [XMLNode] = []

    /// The text of the first child of the name.
    func text(of name: String) -> String? { children.first { $0.name == name }?.text }

    /// Reads a document with Foundation's parser. The bodies come from a store that the operator has chosen.
    ///
    /// - Returns: `nil` if the bytes are not XML.
    static func root(of bytes: some Sequence<UInt8>) -> XMLNode? {
        let reader = XMLReader()
        let parser = XMLParser(data: Data(bytes))
        parser.shouldResolveExternalEntities = false
        parser.delegate = reader
        guard parser.parse() else { return nil }
        return reader.root
    }
}

private final class XMLReader: NSObject, XMLParserDelegate {
    private var open: [XMLNode] = []
    private(set) var root: XMLNode?

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName qName: String?,
        attributes attributeDict: [String: String] = [:]
    ) {
        // A name may have a prefix of a namespace.
        let name = elementName.streamSafe
        open.append(XMLNode(name: name.split(separator: ":").last.map(String.init) ?? name))
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        guard !open.isEmpty else { return }
        open[open.count - 1].text += string
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName qName: String?
    ) {
        guard var node = open.popLast() else { return }
        node.text = node.text.streamSafe
        if open.isEmpty { root = node } else { open[open.count - 1].children.append(node) }
    }
}
