public import PostcardForm

/// The limits of a server's default configuration, and the setting that raises each limit.
///
/// ```swift
/// let explanation = examination.finish().judged(against: [.php, .nginx])
/// ```
public struct ServerProfile: Sendable, Hashable {
    /// The name that selects the profile, such as `php`.
    public let name: String
    /// The name of the server for display.
    public let title: String
    /// The limits of the server's default configuration.
    public let limits: [Limit]
    /// Whether the server ignores fields after a file.
    public var readsNoFieldsAfterFile = false
    /// The name of the only file field that the server accepts; `nil` if it accepts any file field.
    public var onlyFileName: String?
    /// The name of a field that the server requires in every form; `nil` if it requires none.
    public var neededField: String?
    /// Whether the server changes field names so that they have neither dots nor spaces, as PHP does.
    public var renamesFields = false
    /// Whether a field replaces earlier fields of the same name if the name does not end in `[]`.
    public var needsBracketsForLists = false

    /// The media types of files that the server accepts; `nil` if it accepts all types.
    public var fileTypes: [MediaRange]?

    /// A limit of a server.
    public struct Limit: Sendable, Hashable {
        /// The quantity that a limit restricts, in bytes or items.
        public enum Measure: String, Sendable, Hashable {
            /// The size of the whole body.
            case bodyBytes
            /// The size of the content of each file.
            case fileBytes
            /// The size of the content of each text field.
            case fieldBytes
            /// The number of files in a form.
            case fileCount
            /// The number of text fields in a form.
            case fieldCount
            /// The number of files and text fields in a form.
            case partCount
            /// The size of all text fields' names and values, plus two bytes for each field, as in a URL-encoded form.
            case textBytes
            /// The size of the header of one part, with its blank line.
            case partHeaderBytes
            /// The number of bytes in the body before the first file's content.
            case bytesBeforeFile
        }

        /// The quantity that the limit restricts.
        public let measure: Measure
        /// The largest value that the server accepts.
        public let maximum: Int64
        /// The name of the setting that raises the limit; `nil` if there is none.
        public let setting: String?
        /// The advice for a form that exceeds the limit, in a sentence.
        public let advice: String
    }

    init(_ name: String, _ title: String, _ limits: [Limit]) {
        self.name = name
        self.title = title
        self.limits = limits
    }
}

extension ServerProfile {
    /// All known servers.
    public static let all: [ServerProfile] = [
        .php, .nginx, .apache, .spring, .tomcat, .multer, .rails, .django, .flask, .fastAPI, .express, .go, .aspNet,
        .vapor, .s3, .cloudflare, .openAIAudio, .openAIImages,
    ]

    /// Finds a profile by its name, ignoring case. `nil` if there is no such profile.
    public init?(named name: String) {
        guard let profile = Self.all.first(where: { $0.name == name.lowercased() }) else { return nil }
        self = profile
    }

    private static let mebibyte: Int64 = 1 << 20

    private static func limit(_ measure: Limit.Measure, _ maximum: Int64, _ setting: String) -> Limit {
        Limit(measure: measure, maximum: maximum, setting: setting, advice: "Raise \(setting), or send less.")
    }

    /// Makes a limit that no setting raises.
    private static func limit(_ measure: Limit.Measure, _ maximum: Int64, advice: String) -> Limit {
        Limit(measure: measure, maximum: maximum, setting: nil, advice: advice)
    }

    /// PHP 8. Its limit on parts defaults to the sum of its limits on fields and files.
    public static let php: ServerProfile = {
        var php = ServerProfile(
            "php", "PHP",
            [
                limit(.fileBytes, 2 * mebibyte, "upload_max_filesize in php.ini"),
                limit(.bodyBytes, 8 * mebibyte, "post_max_size in php.ini"),
                limit(.fileCount, 20, "max_file_uploads in php.ini"),
                limit(.fieldCount, 1000, "max_input_vars in php.ini"),
                limit(.partCount, 1020, "max_multipart_body_parts in php.ini"),
            ])
        php.needsBracketsForLists = true
        php.renamesFields = true
        return php
    }()

    /// nginx as a proxy.
    public static let nginx = ServerProfile(
        "nginx", "nginx", [limit(.bodyBytes, mebibyte, "client_max_body_size in nginx.conf")])

    /// Apache httpd 2.4.54 or newer.
    public static let apache = ServerProfile(
        "apache", "Apache httpd", [limit(.bodyBytes, 1 << 30, "LimitRequestBody in httpd.conf")])

    /// Spring Boot 3.3.13 or newer, with its embedded Tomcat.
    public static let spring = ServerProfile(
        "spring", "Spring Boot",
        [
            limit(.fileBytes, mebibyte, "spring.servlet.multipart.max-file-size"),
            limit(.bodyBytes, 10 * mebibyte, "spring.servlet.multipart.max-request-size"),
            limit(.partCount, 50, "server.tomcat.max-part-count"),
            limit(.partHeaderBytes, 512, "server.tomcat.max-part-header-size"),
            limit(.textBytes, 2 * mebibyte, "server.tomcat.max-http-form-post-size"),
        ])

    /// Tomcat 9.0.107, 10.1.43 or 11.0.9 and newer. The releases just before these accept ten parts.
    public static let tomcat = ServerProfile(
        "tomcat", "Tomcat",
        [
            limit(.partCount, 50, "maxPartCount of the Connector in server.xml"),
            limit(.partHeaderBytes, 512, "maxPartHeaderSize of the Connector in server.xml"),
            limit(.textBytes, 2 * mebibyte, "maxPostSize of the Connector in server.xml"),
        ])

    /// multer on Express. It refuses a field of exactly 1 MiB, so the maximum is one byte less.
    public static let multer = ServerProfile(
        "multer", "multer", [limit(.fieldBytes, mebibyte - 1, "limits.fieldSize of multer")])

    /// Ruby on Rails with Rack 3. It refuses exactly 128 files or 4096 parts, so each maximum is one less.
    public static let rails = ServerProfile(
        "rails", "Rails (Rack)",
        [
            limit(.fileCount, 127, "RACK_MULTIPART_FILE_LIMIT in the environment"),
            limit(.partCount, 4095, "RACK_MULTIPART_TOTAL_PART_LIMIT in the environment"),
            limit(.textBytes, 16 * mebibyte, "RACK_MULTIPART_BUFFERED_UPLOAD_BYTESIZE_LIMIT in the environment"),
        ])

    /// Django 4.2 or newer, which limits the number of files.
    public static let django = ServerProfile(
        "django", "Django",
        [
            limit(.textBytes, 2_621_440, "DATA_UPLOAD_MAX_MEMORY_SIZE in settings.py"),
            limit(.fieldCount, 1000, "DATA_UPLOAD_MAX_NUMBER_FIELDS in settings.py"),
            limit(.fileCount, 100, "DATA_UPLOAD_MAX_NUMBER_FILES in settings.py"),
        ])

    /// Flask 3.1 with Werkzeug.
    public static let flask = ServerProfile(
        "flask", "Flask (Werkzeug)",
        [
            limit(.fieldBytes, 500_000, "MAX_FORM_MEMORY_SIZE in the app's configuration"),
            limit(.partCount, 1000, "MAX_FORM_PARTS in the app's configuration"),
        ])

    /// FastAPI with Starlette.
    public static let fastAPI = ServerProfile(
        "fastapi", "FastAPI (Starlette)",
        [
            limit(.fileCount, 1000, "max_files of request.form()"),
            limit(.fieldCount, 1000, "max_fields of request.form()"),
            limit(.fieldBytes, mebibyte, "max_part_size of request.form()"),
        ])

    /// busboy on Express. It truncates a field of exactly 1 MiB, so the maximum is one byte less.
    public static let express = ServerProfile(
        "express", "Express (busboy)", [limit(.fieldBytes, mebibyte - 1, "limits.fieldSize of busboy")])

    /// Go's `net/http`, which accepts 42 MiB of text fields: the default memory of 32 MiB, and 10 MiB in addition.
    public static let go = ServerProfile(
        "go", "Go",
        [
            limit(.partCount, 1000, "GODEBUG=multipartmaxparts=… in the environment"),
            limit(.textBytes, 42 * mebibyte, "the maxMemory that r.ParseMultipartForm gets"),
        ])

    /// ASP.NET Core with Kestrel. Its limit on the number of values includes files. Its limit on the length of a value
    /// does not apply to multipart forms.
    public static let aspNet = ServerProfile(
        "aspnet", "ASP.NET Core",
        [
            limit(.bodyBytes, 30_000_000, "MaxRequestBodySize of Kestrel's Limits"),
            limit(.fileBytes, 128 * mebibyte, "MultipartBodyLengthLimit of FormOptions"),
            limit(.fieldBytes, 128 * mebibyte, "MultipartBodyLengthLimit of FormOptions"),
            limit(.partCount, 1024, "ValueCountLimit of FormOptions"),
        ])

    /// Vapor 4.
    public static let vapor = ServerProfile(
        "vapor", "Vapor", [limit(.bodyBytes, 16 << 10, "routes.defaultMaxBodySize, or maxSize of body: .collect,")])

    /// Amazon S3's POST for forms.
    public static let s3: ServerProfile = {
        var s3 = ServerProfile(
            "s3", "Amazon S3",
            [
                limit(
                    .bytesBeforeFile, 20 << 10,
                    advice: "Send less besides the file, or send long values in another "
                        + "request."
                ),
                limit(.fileCount, 1, advice: "Send each file in its own request."),
            ])
        s3.readsNoFieldsAfterFile = true
        s3.onlyFileName = "file"
        s3.neededField = "key"
        return s3
    }()

    /// Cloudflare in front of a server, on its Free and Pro plans.
    public static let cloudflare = ServerProfile(
        "cloudflare", "Cloudflare",
        [limit(.bodyBytes, 100 * 1_000_000, advice: "Choose a plan with a larger limit, or send less.")])

    /// OpenAI's transcriptions and translations, and services with the same API.
    public static let openAIAudio: ServerProfile = {
        var audio = ServerProfile(
            "openai-audio", "OpenAI's audio",
            [
                limit(.bodyBytes, 25 * mebibyte, advice: "Cut the recording, or send it as m4a or ogg."),
                limit(.fileCount, 1, advice: "Send each recording in its own request."),
            ])
        audio.neededField = "model"
        audio.fileTypes = [
            "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm", "application/ogg",
            "video/mp4", "video/mpeg", "video/webm",
        ]
        return audio
    }()

    /// OpenAI's image edits, and services with the same API.
    public static let openAIImages: ServerProfile = {
        var images = ServerProfile(
            "openai-images", "OpenAI's images",
            [
                limit(.fileBytes, 50_000_000 - 1, advice: "Make the picture smaller."),
                limit(.fileCount, 16, advice: "Send at most 16 pictures."),
            ])
        images.neededField = "prompt"
        images.fileTypes = ["image/png", "image/webp", "image/jpeg"]
        return images
    }()
}
