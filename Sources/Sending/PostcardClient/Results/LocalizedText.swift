import HTTPTypes
import PostcardForm

#if canImport(Darwin)
package import Foundation
#else
import PostcardFoundation
#endif

/// A sentence of a module's string catalog, `Resources/Localizable.xcstrings`: its key and its placeholders' values.
///
/// The catalog is for the users of an app. Its sentences name no addresses and give no advice to developers. For logs,
/// errors have an English `message`.
package struct LocalizedText: Sendable, Equatable {
    package let key: String
    package let arguments: [String]

    package init(key: String, arguments: [String] = []) {
        self.key = key
        self.arguments = arguments
    }

    #if canImport(Darwin)
    /// The sentence in the user's language; `nil` if the bundle's catalog does not have it.
    package func localized(in bundle: Bundle) -> String? {
        let format = bundle.localizedString(forKey: key, value: nil, table: nil)
        // Foundation returns the key itself if it is not found.
        return format == key ? nil : filling(format)
    }
    #endif

    /// Fills the placeholders `%1$@` to `%9$@` of a format. A placeholder without an argument is removed, and `%%` is a
    /// percent sign. Placeholders in arguments are not filled, because arguments may come from a server.
    package func filling(_ format: String) -> String {
        var text = ""
        var rest = Substring(format)
        while let percent = rest.firstIndex(of: "%") {
            text += rest[..<percent]
            rest = rest[percent...].dropFirst()
            if rest.first == "%" {
                text += "%"
                rest = rest.dropFirst()
            } else if let number = rest.first?.wholeNumberValue, rest.dropFirst().hasPrefix("$@") {
                if arguments.indices.contains(number - 1) { text += arguments[number - 1] }
                rest = rest.dropFirst(3)
            } else {
                text += "%"
            }
        }
        return text + rest
    }
}

extension LocalizedText {
    /// The sentence in the user's language; `nil` if this module's catalog does not have it, and always on Linux.
    var localized: String? {
        #if canImport(Darwin)
        localized(in: .module)
        #else
        nil
        #endif
    }
}

extension UploadError {
    /// What happened, in a sentence for users of the app.
    var localizedMessage: LocalizedText {
        if code == .form, let formError { return formError.localizedMessage }
        guard code == .refused, let response else { return LocalizedText(key: "UploadError.\(code)") }
        let status = String(response.status.code)
        if let reason = response.reason {
            return LocalizedText(key: "UploadError.refused.reason", arguments: [status, reason])
        }
        return LocalizedText(key: "UploadError.refused", arguments: [status])
    }

    /// What to do, in a sentence for users of the app.
    var localizedAdvice: LocalizedText {
        // The possible arrival of the upload matters more than the reason for its failure.
        if delivery == .responseLost { return LocalizedText(key: "UploadError.advice.response-lost") }
        if code == .form, let formError { return formError.localizedAdvice }
        guard code == .refused, let status = response?.status.code else {
            return LocalizedText(key: "UploadError.\(code).advice")
        }
        switch status {
        case 401, 403, 413, 415, 429, 507, 511: return LocalizedText(key: "UploadError.refused.\(status).advice")
        case 408, 502...504, 520...527: return LocalizedText(key: "UploadError.refused.busy.advice")
        default: return LocalizedText(key: "UploadError.refused.advice")
        }
    }
}

extension FormError {
    /// What happened, in a sentence for users of the app. Only errors about files have their own sentences, because
    /// other errors concern the developer.
    var localizedMessage: LocalizedText {
        guard isAboutFile, let path else { return LocalizedText(key: "FormError.other") }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return LocalizedText(key: "FormError.\(code)", arguments: [name])
    }

    /// What to do, in a sentence for users of the app.
    var localizedAdvice: LocalizedText {
        LocalizedText(key: isAboutFile && path != nil ? "FormError.\(code).advice" : "FormError.other.advice")
    }

    private var isAboutFile: Bool {
        [.fileMissing, .fileNotRegular, .fileUnreadable, .fileChanged, .metadataUnreadable].contains(code)
    }
}
