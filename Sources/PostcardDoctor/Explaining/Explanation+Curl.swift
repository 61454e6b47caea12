extension Explanation {
    /// The command line of curl that sends the form as it should have been: with the parts that were found, and a
    /// boundary and lengths of curl's own. `nil` if there are no parts, or too many to describe, or if curl's arguments
    /// cannot say a name.
    package var curl: CurlCommand? {
        guard !parts.isEmpty, parts.count == partCount, !parts.contains(where: { $0.name.contains("=") })
        else { return nil }
        var command = CurlCommand(url: url, method: head?.method ?? "POST")
        command.secretFields = ["Authorization", "Cookie"].filter { head?.all($0.lowercased()).isEmpty == false }
        command.content = .parts(
            parts.map { part in
                if let filename = part.filename {
                    .file(name: part.name, filename: filename, contentType: part.contentType)
                } else {
                    .text(name: part.name, value: part.text, contentType: part.contentType)
                }
            })
        return command
    }

    /// The URL of the request; that of a receiver on this machine if it is unknown.
    private var url: String {
        let target = head?.target ?? ""
        if target.hasPrefix("http://") || target.hasPrefix("https://") { return target }
        let host = authority ?? head?.all("host").first?.value ?? ""
        guard !host.isEmpty else { return "http://127.0.0.1:8080/uploads" }
        let scheme = scheme ?? (host.hasSuffix(":443") ? "https" : "http")
        // Any other target could be an option of curl.
        return "\(scheme)://\(host)\(target.hasPrefix("/") ? target : "/")"
    }
}
