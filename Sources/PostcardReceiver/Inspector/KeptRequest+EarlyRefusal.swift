import HTTPTypes
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension KeptRequest {
    /// Describes what was no request as far as it looks like one.
    init(_ refusal: EarlyRefusal, scheme: String) {
        let lines = String(decoding: refusal.bytes, as: UTF8.self).replacing("\r\n", with: "\n")
            .replacing("\r", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        let fields = Self.fields(lines.dropFirst().prefix { !$0.isEmpty })
        func value(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
        self.init(
            received: Date(), duration: .zero, method: words.first.map(String.init) ?? "", scheme: scheme,
            host: value("host") ?? "", path: words.count > 1 ? Secrets.masked(path: String(words[1])) : "",
            fields: fields, contentType: value("content-type"), outcome: .refused(refusal.problem),
            notes: .none)
    }

    private static func fields(_ lines: ArraySlice<Substring>) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for line in lines {
            let isFolded = line.first == " " || line.first == "\t"
            // A line that goes on with a secret is one, whatever it looks like.
            let isSecret = isFolded && fields.last?.value == Secrets.mask
            fields.append(isSecret ? ("", Secrets.mask) : field(line))
        }
        return fields
    }

    /// A line that is no header field is one without a value.
    private static func field(_ line: Substring) -> (name: String, value: String) {
        let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = halves[0]
        let word = name.trimmingPrefix(while: isBlank).prefix { !isBlank($0) }
        guard halves.count == 2 else {
            return Secrets.isSecret(word) ? (String(word), Secrets.mask) : (Secrets.masked(path: String(name)), "")
        }
        return (String(name), Secrets.masked(String(halves[1].trimmingPrefix(while: isBlank)), of: word))
    }

    private static func isBlank(_ character: Character) -> Bool {
        character == " " || character == "\t"
    }
}
