import Testing

@testable import PostcardS3

struct XMLNodeTests {
    /// The names and texts of an element and those in it.
    private static func outline(_ node: XMLNode) -> String {
        let children = node.children.map(outline).joined(separator: ",")
        return "\(node.name)=\(node.text)" + (children.isEmpty ? "" : "(\(children))")
    }

    @Test(arguments: [
        ("<a/>", "a="),
        ("<?xml version=\"1.0\"?>\n<a xmlns=\"http://s3.example/\"><b>1</b><b>2</b></a>\n", "a=(b=1,b=2)"),
        ("\u{FEFF}<!-- <b> --><a ><b c='>' d=\"/'\" /></a >", "a=(b=)"),
        ("<s:a>x<b>y</b>z</s:a>", "a=xz(b=y)"),
        ("<a>&lt;&amp;lt;&gt;&quot;&apos;&#13;&#x1F4EE;</a>", "a=<&lt;>\"'\r\u{1F4EE}"),
        ("<a>1<![CDATA[<b>&amp;]] >]]>2<!-- 3 -->4</a>", "a=1<b>&amp;]] >24"),
        ("<a>고양이</a>", "a=고양이"),
    ])
    func `a document is read`(document: String, expected: String) throws {
        let root = try #require(XMLNode.root(of: document.utf8))
        #expect(Self.outline(root) == expected)
    }

    @Test(arguments: [
        "", " ", "text", "text<a/>", "<a>", "<a", "</a>", "<a></b>", "<a><b></a></b>", "< a/>", "<>", "<a>&b;</a>",
        "<a>&amp</a>", "<a>&#xD800;</a>", "<a>&#-1;</a>", "<a b='></a>", "<![CDATA[a]]><a/>", "<!-- <a/>", "<?xml",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        String(repeating: "<a>", count: 65) + String(repeating: "</a>", count: 65),
    ])
    func `what is no document is refused`(document: String) {
        #expect(XMLNode.root(of: document.utf8) == nil)
    }

    @Test
    func `an unfinished document is refused wherever it ends`() {
        let document = Array("<?xml?><!--c--><a b=\"c\">d&amp;<![CDATA[e]]><f/></a>".utf8)
        #expect(XMLNode.root(of: document) != nil)
        for length in document.indices {
            #expect(XMLNode.root(of: document[..<length]) == nil)
        }
    }
}
