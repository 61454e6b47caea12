#if Server
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension KeptRequest {
    /// Describes what was no request as far as it looks like one.
    init(_ refusal: EarlyRefusal, scheme: String) {
        let lines = String(decoding: refusal.bytes, as: UTF8.self).replacing("\r\n", with: "\n")
            .split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        let fields = lines.dropFirst().prefix { !$0.isEmpty }.map(Self.field)
        func value(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
        self.init(
            received: Date(), duration: .zero, method: words.first.map(String.init) ?? "", scheme: scheme,
            host: value("host") ?? "", path: words.count > 1 ? Secrets.masked(path: String(words[1])) : "",
            fields: fields, contentType: value("content-type"), outcome: .refused(refusal.problem),
            notes: .none)
    }

    /// A line that is no header field is one without a value.
    private static func field(_ line: Substring) -> (name: String, value: String) {
        let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(halves[0])
        guard halves.count == 2 else {
            let word = name.prefix { $0 != " " && $0 != "\t" }
            return Secrets.isSecret(word) ? (String(word), Secrets.mask) : (name, "")
        }
        let value = halves[1].trimmingPrefix { $0 == " " || $0 == "\t" }
        return (name, Secrets.isSecret(name) ? Secrets.mask : String(value))
    }
}
#endif
