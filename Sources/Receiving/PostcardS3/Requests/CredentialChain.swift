import PostcardFoundation

/// A request to the metadata service of a container or an instance.
struct MetadataRequest: Sendable {
    var method = "GET"
    var url: String
    var headers: [(name: String, value: String)] = []
}

/// Looks for credentials in several places, one after the other.
struct CredentialChain: Sendable {
    let environment: [String: String]
    /// Makes a request, and returns the body of a response with the status 200.
    let fetch: @Sendable (MetadataRequest) async throws -> [UInt8]

    func credentials() async throws -> S3Credentials {
        if let credentials = try ofEnvironment() { return credentials }
        if let credentials = try ofProfile() { return credentials }
        if let credentials = try await ofContainer() { return credentials }
        if let credentials = try await ofInstance() { return credentials }
        throw S3Error.noCredentials
    }

    /// The region in the environment or in the profile.
    var region: String? {
        value("AWS_REGION") ?? value("AWS_DEFAULT_REGION") ?? (try? profile())?.settings["region"]
    }

    private func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

    private func ofEnvironment() throws -> S3Credentials? {
        guard let key = value("AWS_ACCESS_KEY_ID") else { return nil }
        guard let secret = value("AWS_SECRET_ACCESS_KEY") else {
            throw S3Error.unusableCredentials("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not.")
        }
        return S3Credentials(accessKeyID: key, secretAccessKey: secret, sessionToken: value("AWS_SESSION_TOKEN"))
    }

    // MARK: - Files

    private var profileName: String { value("AWS_PROFILE") ?? value("AWS_DEFAULT_PROFILE") ?? "default" }

    private func profile() throws -> SharedProfile? {
        let folder = (value("HOME") ?? "/root") + "/.aws"
        let credentials = try text(of: value("AWS_SHARED_CREDENTIALS_FILE") ?? folder + "/credentials")
        let config = try text(of: value("AWS_CONFIG_FILE") ?? folder + "/config")
        return SharedProfile(profileName, credentialsFile: credentials, configFile: config)
    }

    private func text(of path: String) throws -> String? {
        var path = path
        if path.hasPrefix("~/"), let home = value("HOME") { path = home + path.dropFirst() }
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        } catch {
            throw S3Error.unusableCredentials("\(path) cannot be read: \(error)")
        }
    }

    private func ofProfile() throws -> S3Credentials? {
        let name = profileName
        guard let settings = try profile()?.settings else {
            guard name == "default" else {
                throw S3Error.unusableCredentials("AWS_PROFILE names the profile \(name), which no file has.")
            }
            return nil
        }
        if let key = settings["aws_access_key_id"] {
            guard let secret = settings["aws_secret_access_key"] else {
                throw S3Error.unusableCredentials("The profile \(name) has a key without aws_secret_access_key.")
            }
            return S3Credentials(
                accessKeyID: key, secretAccessKey: secret, sessionToken: settings["aws_session_token"])
        }
        let others = ["credential_process", "role_arn", "sso_session", "sso_start_url", "web_identity_token_file"]
        for unsupported in others where settings[unsupported] != nil {
            throw S3Error.unusableCredentials("The profile \(name) uses \(unsupported), which Postcard does not.")
        }
        return nil
    }

    // MARK: - Services

    private struct Response: Decodable {
        let AccessKeyId: String
        let SecretAccessKey: String
        let Token: String?
        let Expiration: Date?
    }

    private func credentials(_ json: [UInt8], from service: String) throws -> S3Credentials {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        guard let response = try? decoder.decode(Response.self, from: Data(json)) else {
            throw S3Error.unusableCredentials("The \(service) answered with something else than credentials.")
        }
        return S3Credentials(
            accessKeyID: response.AccessKeyId, secretAccessKey: response.SecretAccessKey, sessionToken: response.Token,
            expires: response.Expiration)
    }

    private func ofContainer() async throws -> S3Credentials? {
        var request: MetadataRequest
        if let path = value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            request = MetadataRequest(url: "http://169.254.170.2" + path)
        } else if let url = value("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            guard Self.isTrusted(url) else {
                throw S3Error.unusableCredentials(
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither HTTPS nor an address of this machine.")
            }
            request = MetadataRequest(url: url)
        } else {
            return nil
        }
        var token = value("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        if let path = value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") { token = try text(of: path) }
        if let token {
            request.headers.append(("Authorization", String(token.filter { !$0.isNewline })))
        }
        return try credentials(try await fetch(request), from: "container's service")
    }

    /// Whether a token may be sent to a URL: over HTTPS, to this machine, or to its container service.
    private static func isTrusted(_ url: String) -> Bool {
        guard let url = URL(string: url), let host = url.host() else { return false }
        return url.scheme == "https"
            || ["localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"].contains(host)
    }

    private func ofInstance() async throws -> S3Credentials? {
        guard value("AWS_EC2_METADATA_DISABLED")?.lowercased() != "true" else { return nil }
        let base = value("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254"
        let root = (base.hasSuffix("/") ? String(base.dropLast()) : base) + "/latest"
        let token: String
        do {
            token = try await text(
                MetadataRequest(
                    method: "PUT", url: root + "/api/token",
                    headers: [("X-aws-ec2-metadata-token-ttl-seconds", "300")]))
        } catch {
            // The machine is not an instance.
            return nil
        }
        let folder = root + "/meta-data/iam/security-credentials/"
        let headers = [(name: "X-aws-ec2-metadata-token", value: token)]
        guard let role = try? await text(MetadataRequest(url: folder, headers: headers)).split(separator: "\n").first
        else {
            throw S3Error.unusableCredentials("The instance has no role.")
        }
        return try credentials(
            try await fetch(MetadataRequest(url: folder + role, headers: headers)), from: "instance's metadata service")
    }

    private func text(_ request: MetadataRequest) async throws -> String {
        String(decoding: try await fetch(request), as: UTF8.self)
    }
}

/// A profile in the files that the AWS command line shares with other programs.
struct SharedProfile: Sendable {
    /// The settings of the profile. Those in the credentials file take precedence.
    let settings: [String: String]

    init?(_ name: String, credentialsFile: String?, configFile: String?) {
        let first = credentialsFile.flatMap { Self.sections($0)[name] }
        let sections = configFile.map(Self.sections)
        var second = sections?["profile \(name)"]
        if name == "default" { second = sections?["default"] ?? second }
        guard first != nil || second != nil else { return nil }
        settings = (first ?? [:]).merging(second ?? [:]) { first, _ in first }
    }

    /// Parses a file with section names in brackets, each followed by settings. Skips nested, indented settings.
    static func sections(_ text: String) -> [String: [String: String]] {
        var sections: [String: [String: String]] = [:]
        var section: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let trimmed = trim(line)
            guard let first = trimmed.first, first != "#", first != ";" else { continue }
            if first == "[" {
                // A comment may follow the closing bracket.
                guard let end = trimmed.firstIndex(of: "]") else { continue }
                let words = trimmed[..<end].dropFirst().split(whereSeparator: \.isWhitespace)
                section = words.joined(separator: " ").replacing("\"", with: "")
                if let section { sections[section] = sections[section] ?? [:] }
            } else if let section, let equals = trimmed.firstIndex(of: "="), line.first?.isWhitespace != true {
                var value = trim(trimmed[trimmed.index(after: equals)...])
                if let comment = value.firstRange(of: " #") { value = trim(value[..<comment.lowerBound]) }
                sections[section]?[trim(trimmed[..<equals]).lowercased()] = String(value)
            }
        }
        return sections
    }

    private static func trim(_ text: Substring) -> Substring {
        var text = text
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
