import HTTPTypes
import Testing

@testable import PostcardWire

@Suite struct ResumptionFieldsTests {
    @Test(
        arguments: [
            ("?1", true), ("?0", false), (" ?1 ", true), ("?1;a", true), ("?0;a=1; b=\"x;y\"", false),
            ("1", nil), ("true", nil), ("?2", nil), ("?", nil), ("", nil), ("?1,", nil), ("?1, ?1", nil), ("?1 x", nil),
            ("?1;", nil), ("?1;A", nil),
        ] as [(String, Bool?)])
    func `completeness is one boolean, or not there`(value: String, truth: Bool?) {
        #expect(HTTPFields([HTTPField(name: .uploadComplete, value: value)]).uploadCompleteness(in: .newest) == truth)
        let incomplete = HTTPFields([HTTPField(name: .uploadIncomplete, value: value)])
        #expect(incomplete.uploadCompleteness(in: .interop3) == truth.map { !$0 })
        #expect(incomplete.uploadCompleteness(in: .interop4) == nil)
    }

    @Test(
        arguments: [
            ("0", 0), ("42", 42), ("999999999999999", 999_999_999_999_999), ("-0", 0), ("007", 7), ("5;a=?1", 5),
            ("-1", nil), ("1.0", nil), ("1000000000000000", nil), ("+1", nil), ("0x1", nil), ("1 2", nil), ("?1", nil),
            ("\"1\"", nil), ("", nil), ("-", nil), ("1;", nil), ("１", nil),
        ] as [(String, Int64?)])
    func `offsets and lengths are integers from 0 on, or not there`(value: String, number: Int64?) {
        let fields = HTTPFields([
            HTTPField(name: .uploadOffset, value: value), HTTPField(name: .uploadLength, value: value),
        ])
        #expect(fields.uploadOffset == number)
        #expect(fields.uploadLength == number)
    }

    @Test func `a field that comes twice is not there`() {
        let fields = HTTPFields([
            HTTPField(name: .uploadOffset, value: "1"), HTTPField(name: .uploadOffset, value: "1"),
            HTTPField(name: .uploadComplete, value: "?1"), HTTPField(name: .uploadComplete, value: "?1"),
        ])
        #expect(fields.uploadOffset == nil)
        #expect(fields.uploadCompleteness(in: .newest) == nil)
    }

    @Test(
        arguments: [
            ("max-size=5, min-size=0, max-append-size=3, min-append-size=1, max-age=60", UploadLimits(5, 0, 3, 1, 60)),
            ("max-age=60;unit=s,max-size=5", UploadLimits(maximumBytes: 5, lifetimeSeconds: 60)),
            ("max-size=5, max-size=6", UploadLimits(maximumBytes: 6)),
            (
                "a, b;c=1, d=?0, e=(1 \"two\" *t/:);x, f=:aGk=:, g=@-1, h=%\"f%c3%bc\", i=1.5, max-age=1",
                UploadLimits(lifetimeSeconds: 1)
            ),
            ("", UploadLimits()), ("expires=3", UploadLimits()),
            ("max-size", nil), ("max-size=?1", nil), ("max-size=\"5\"", nil), ("max-size=-1", nil),
            ("max-size=1.5", nil),
            ("max-size=5,", nil), ("max-size=5 min-size=1", nil), (",", nil), ("Max-Size=5", nil), ("max-size=", nil),
            ("a=(1, max-size=5", nil), ("a=(1\"x\")", nil), ("a=\"\\x\"", nil), ("a=\"", nil), ("a=%\"%ff\"", nil),
            ("a=%\"%FF\"", nil), ("a=:a b:", nil), ("a=@1.5", nil), ("a=1.2345", nil), ("a=1234567890123.1", nil),
        ] as [(String, UploadLimits?)])
    func `limits are read as a dictionary or ignored as a whole`(value: String, limits: UploadLimits?) {
        let fields = HTTPFields([HTTPField(name: .uploadLimit, value: value)])
        #expect(fields.uploadLimits(in: .newest) == limits)
    }

    @Test func `a limit that no integer of a structured field can be is left out`() {
        var fields = HTTPFields()
        let limits = UploadLimits(maximumBytes: 1_000_000_000_000_000, maximumAppendBytes: 999_999_999_999_999)
        fields.setUploadLimits(limits, in: .newest)
        #expect(fields[.uploadLimit] == "max-append-size=999999999999999")
    }

    @Test func `limits on several lines are one dictionary`() {
        let fields = HTTPFields([
            HTTPField(name: .uploadLimit, value: "max-size=5"), HTTPField(name: .uploadLimit, value: "max-age=6"),
        ])
        #expect(fields.uploadLimits(in: .newest) == UploadLimits(maximumBytes: 5, lifetimeSeconds: 6))
    }

    @Test func `a field of more than four kibibytes is not looked at`() {
        func limits(_ padding: Int) -> UploadLimits? {
            let value = "a=\"" + String(repeating: "x", count: padding) + "\", max-size=5"
            return HTTPFields([HTTPField(name: .uploadLimit, value: value)]).uploadLimits(in: .newest)
        }
        let overhead = "a=\"\", max-size=5".utf8.count
        #expect(limits(4096 - overhead) == UploadLimits(maximumBytes: 5))
        #expect(limits(4097 - overhead) == nil)
    }

    @Test(arguments: ResumptionVersion.allCases)
    func `what is written for a version is read in it`(version: ResumptionVersion) {
        var fields = HTTPFields()
        fields.setResumptionVersion(version)
        fields.setUploadCompleteness(false, in: version)
        fields.uploadOffset = 7
        fields.setUploadLength(9, in: version)
        let limits = UploadLimits(maximumBytes: 10, lifetimeSeconds: 11)
        fields.setUploadLimits(limits, in: version)
        #expect(ResumptionVersion(of: fields) == version)
        #expect(fields.uploadCompleteness(in: version) == false)
        #expect(fields.uploadOffset == 7)
        #expect(fields.uploadLength == (version.has(.length) ? 9 : nil))
        #expect(fields.uploadLimits(in: version) == (version.has(.limits) ? limits : nil))
    }

    @Test(
        arguments: [
            (nil, .newest), ("3", .interop3), ("5", .interop5), ("6", .interop6), ("8", .interop8), ("6;a", .interop6),
            ("9", .interop9), ("10", .newest), ("999999999999999", .newest), ("2", nil), ("0", nil), ("-3", nil),
            ("six", nil), ("6, 6", nil), ("", nil),
        ] as [(String?, ResumptionVersion?)])
    func `the version is the number's, and the newest without one`(value: String?, version: ResumptionVersion?) {
        var fields = HTTPFields()
        fields[.uploadDraftInteropVersion] = value
        #expect(ResumptionVersion(of: fields) == version)
    }

    /// What each version has that the one before it does not have.
    @Test(
        arguments: [
            (.interop3, []), (.interop4, [.completeField]), (.interop5, [.progressReports]),
            (.interop6, [.partialUploadType, .limits, .length]), (.interop7, [.maximumAge, .appendCompleteness]),
            (.interop8, [.lengthAfterCompletion]), (.interop9, [.emptyCreation, .replay, .incremental]), (.newest, []),
        ] as [(ResumptionVersion, Set<ResumptionRule>)])
    func `a version has its own rules, and those of the versions before it`(
        version: ResumptionVersion, rules: Set<ResumptionRule>
    ) {
        for rule in ResumptionRule.allCases {
            let isOlder = ResumptionVersion.allCases.contains { $0 < version && $0.has(rule) }
            #expect(version.has(rule) == (rules.contains(rule) || isOlder), "\(rule)")
        }
    }

    @Test(arguments: ResumptionVersion.allCases)
    func `a message has no field that its version does not know`(version: ResumptionVersion) {
        var fields = HTTPFields()
        fields.setResumptionVersion(version)
        fields.setUploadCompleteness(true, in: version)
        fields.setUploadLength(1, in: version)
        fields.setUploadLimits(UploadLimits(maximumBytes: 1), in: version)
        fields.askForIncrementalDelivery(in: version)
        #expect(fields.contains(.uploadDraftInteropVersion) == (version != .newest))
        #expect(fields.contains(.uploadIncomplete) == (version == .interop3))
        #expect(fields.contains(.uploadComplete) == (version != .interop3))
        #expect(fields.contains(.uploadLength) == (version >= .interop6))
        #expect(fields.contains(.uploadLimit) == (version >= .interop6))
        #expect(fields.contains(.incremental) == (version >= .interop9))
    }

    @Test func `the wire has the names of each version`() {
        var fields = HTTPFields()
        fields.setUploadCompleteness(true, in: .interop3)
        #expect(fields[.uploadIncomplete] == "?0")
        fields.setUploadLimits(UploadLimits(maximumBytes: 1, lifetimeSeconds: 2), in: .interop6)
        #expect(fields[.uploadLimit] == "max-size=1, expires=2")
        fields.setUploadLimits(UploadLimits(maximumBytes: 1, lifetimeSeconds: 2), in: .newest)
        #expect(fields[.uploadLimit] == "max-size=1, max-age=2")
        #expect(
            ResumptionProblemType.mismatchingOffset.uri
                == "https://iana.org/assignments/http-problem-types#mismatching-upload-offset")
    }

    @Test(arguments: [
        ("application/partial-upload", true), ("text/plain, Application/Partial-Upload ; q=1", true),
        ("application/*", false), ("application/partial-uploads", false), ("", false),
    ])
    func `appends or limits offer resumption`(value: String, isOffered: Bool) {
        let fields = HTTPFields([HTTPField(name: .acceptPatch, value: value)])
        #expect(fields.offersResumableUploads(in: .newest) == isOffered)
        #expect(HTTPFields([HTTPField(name: .uploadLimit, value: "min-size=0")]).offersResumableUploads(in: .newest))
        #expect(!HTTPFields().offersResumableUploads(in: .newest))
    }
}

extension UploadLimits {
    fileprivate init(_ maximum: Int64, _ minimum: Int64, _ append: Int64, _ least: Int64, _ lifetime: Int64) {
        self.init(
            maximumBytes: maximum, minimumBytes: minimum, maximumAppendBytes: append, minimumAppendBytes: least,
            lifetimeSeconds: lifetime)
    }
}
