import ArgumentParser

/// The options of curl that postcard lacks, for the commands that replace curl.
enum CurlOptions {
    enum Meaning: Equatable {
        /// The option is ignored, because its effect is the default or does not concern forms.
        case ignored(hasValue: Bool)
        /// The option is refused. The advice says what to write instead, as the end of a sentence.
        case refused(advice: String)
    }

    /// The letters of curl's short options with a value, which may follow the letter directly.
    static let lettersWithValue = Set("AbcCdDeEFhHKmoPQrtTuUwxXyYz".utf8)

    /// Looks up an option of curl by its name with dashes. Returns `nil` if the command has the same option, or if curl
    /// has no such option. `isQueued` says whether the form is added to a queue instead of being sent.
    static func meaning(of name: String, isQueued: Bool) -> Meaning? {
        if isQueued {
            if name == "-s" || name == "--silent" { return .ignored(hasValue: false) }
            if ofRun.contains(name) {
                return .refused(advice: "write it for postcard queue run, which sends the form.")
            }
        }
        return meanings[name] ?? prefixes.first { name.hasPrefix($0.prefix) }.map { .refused(advice: $0.advice) }
    }

    /// Options of curl that belong to `queue run` and not to `queue add`.
    private static let ofRun = Set(
        words(
            "-k --insecure -x --proxy --cacert --cert --key --resolve --connect-timeout --limit-rate --http1.1 --http2 "
                + "--tlsv1.2 --tlsv1.3 --retry -m --max-time"))

    private static let meanings: [String: Meaning] = {
        var meanings: [String: Meaning] = [:]
        for name in words(ignoredFlags) { meanings[name] = .ignored(hasValue: false) }
        for name in words(ignoredValues) { meanings[name] = .ignored(hasValue: true) }
        for (names, advice) in refused {
            for name in words(names) { meanings[name] = .refused(advice: advice) }
        }
        return meanings
    }()

    private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

    private static let ignoredFlags = """
        -S --show-error -f --fail --fail-with-body --fail-early -L --location --compressed -# --progress-bar \
        --no-progress-meter --styled-output --no-styled-output -g --globoff --path-as-is -N --no-buffer -q --disable \
        --basic --retry-connrefused --retry-all-errors --no-keepalive --no-sessionid --tcp-nodelay --tcp-fastopen \
        --suppress-connect-headers -p --proxytunnel --proxy-basic --trace-time --no-clobber -1 --tlsv1 --tlsv1.0 \
        --post301 --post302
        """

    private static let ignoredValues = "--retry-delay --keepalive-time --expect100-timeout --happy-eyeballs-timeout-ms"

    private static let authentication =
        "only Basic is supported, with -u name:password, and tokens, with -H 'Authorization: Bearer …'."
    private static let output = "the response goes to standard output, so write > FILE."
    private static let pem = "write --cacert FILE, --cert FILE and --key FILE, with PEM files without a passphrase."
    private static let proxy =
        "name the proxy with its user in -x http://user:password@host:port or -x socks5://host:port; -x '' is none."
    private static let record = "to see the request as it would be sent, add --dry-run."

    private static let refused: [(names: String, advice: String)] = [
        (
            "-d --data --data-ascii --data-binary --data-raw --data-urlencode -T --upload-file -G --get -I --head",
            "a form has no other body, so write each field as -F name=value."
        ),
        ("-A --user-agent", "write -H 'User-Agent: …'."), ("-b --cookie", "write -H 'Cookie: …'."),
        ("-c --cookie-jar -j --junk-session-cookies", "cookies are not kept, so write -H 'Cookie: …'."),
        ("-e --referer", "write -H 'Referer: …'."), ("--oauth2-bearer", "write -H 'Authorization: Bearer …'."),
        ("--anyauth --digest --ntlm --ntlm-wb --negotiate --delegation --service-name --aws-sigv4", authentication),
        ("-n --netrc --netrc-optional --netrc-file", "write -u name:password."),
        ("-i --include", "to see the status and the header fields of the response, add --json."),
        ("-D --dump-header", "the header fields of the response are in what --json writes."),
        ("-w --write-out", "to see the status, the bytes and the seconds, add --json."),
        (
            "-v --verbose",
            "to see the request, add --dry-run, and to see it as a receiver does, run postcard explain --listen 9000."
        ),
        ("--trace --trace-ascii --trace-ids --libcurl", record),
        (
            "-o --output -O --remote-name --remote-name-all -J --remote-header-name --output-dir --create-dirs -R",
            output
        ),
        ("--remote-time --remove-on-error --create-file-mode --xattr", output), ("--stderr", "write 2> FILE."),
        (
            "-0 --http1.0 --http0.9 --http2-prior-knowledge --http3 --http3-only --no-alpn",
            "write --http1.1 or --http2, or leave both out."
        ),
        ("-2 -3 --sslv2 --sslv3 --tlsv1.1 --tls-max --ssl --ssl-reqd", "write --tlsv1.2 or --tlsv1.3."),
        ("-4 --ipv4 -6 --ipv6 --connect-to", "write --resolve host:port:address, with an address of that kind."),
        (
            "--dns-servers --dns-interface --dns-ipv4-addr --dns-ipv6-addr --doh-url",
            "write --resolve host:port:address."
        ),
        ("--interface --local-port --unix-socket --abstract-unix-socket --haproxy-protocol", "write -x, or use curl."),
        ("--capath --crlfile --pass --cert-type --key-type -E --ca-native --engine --ssl-no-revoke", pem),
        (
            "--pinnedpubkey --cert-status --ciphers --tls13-ciphers --curves",
            "write --cacert FILE with the one that is trusted."
        ),
        ("-U --preproxy --noproxy", proxy),
        (
            "--location-trusted",
            "credentials are sent only to their own origin, so write the URL that the redirect leads to."
        ),
        (
            "--max-redirs --post303",
            "up to five redirects are followed, and only after 307 and 308 is the form sent again."
        ),
        ("--proto --proto-redir --proto-default", "leave it out, and write the URL with https://."),
        ("--retry-max-time", "write -m SECONDS, for all attempts together."),
        ("-y --speed-time -Y --speed-limit", "write --timeout SECONDS, for how long no byte may move."),
        ("--form-escape", "leave it out, because names are written as browsers write them."),
        ("--url-query --request-target", "write it into the URL."),
        ("-: --next -Z --parallel --parallel-immediate --parallel-max", "send each request with a command of its own."),
        ("-C --continue-at -r --range", "to resume an upload, write --resumable."),
        (
            "-a --append -B --use-ascii -l --list-only -P -Q --quote -t --telnet-option -z --time-cond --raw --tr-encoding "
                + "--max-filesize --rate --alt-svc --hsts --compressed-ssh --disable-eprt --disable-epsv --metalink --krb "
                + "--disallow-username-in-url --egd-file --random-file --ignore-content-length --login-options --no-npn "
                + "--pubkey --etag-compare --etag-save --false-start -M --manual",
            pointless
        ),
    ]

    private static let pointless = "leave it out, because it has no meaning for a form."

    private static let prefixes: [(prefix: String, advice: String)] = [
        ("--proxy-", proxy), ("--proxy1", proxy), ("--socks", proxy), ("--ssl-", pem), ("--tlsauth", pem),
        ("--tlsuser", pem), ("--tlspass", pem), ("--doh-", pointless),
        ("--ftp-", pointless), ("--mail-", pointless), ("--tftp-", pointless), ("--sasl-", pointless),
        ("--hostpub", pointless),
    ]
}
