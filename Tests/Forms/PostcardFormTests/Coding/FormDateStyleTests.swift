import Foundation
import PostcardForm
import Testing

@Suite("Dates in a form")
struct FormDateStyleTests {
    static let read: [(text: String, seconds: Double)] = [
        ("1970-01-01T00:00:00Z", 0), ("2026-11-20T12:00:00Z", 1_795_176_000), ("2026-11-20t12:00:00z", 1_795_176_000),
        ("2026-11-20T12:00:00.25Z", 1_795_176_000.25), ("2026-11-20T21:00:00+09:00", 1_795_176_000),
        ("2026-11-20T21:00:00+0900", 1_795_176_000), ("2026-11-20T03:30:00-08:30", 1_795_176_000),
        ("2026-11-20 12:00:00", 1_795_176_000), ("2026-11-20T12:00", 1_795_176_000), ("2026-11-20", 1_795_132_800),
        ("2024-02-29", 1_709_164_800), ("2000-02-29", 951_782_400), ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("9999-12-31T23:59:59Z", 253_402_300_799), ("2016-12-31T23:59:60Z", 1_483_228_800),
        ("1969-12-31T23:59:59.5Z", -0.5),
    ]

    @Test(arguments: read)
    func `ISO 8601 is read as RFC 3339 and browsers write it`(text: String, seconds: Double) throws {
        let decoded = try FormDecoder().decode([String: Date].self, "a=\(text)")
        #expect(decoded == ["a": Date(timeIntervalSince1970: seconds)])
    }

    @Test(arguments: [
        "2026", "2026-11", "26-11-20", "2026-13-01", "2026-00-01", "2026-11-31", "2025-02-29", "1900-02-29",
        "2026-11-20T", "2026-11-20T24:00", "2026-11-20T12:60", "2026-11-20T12:00:61Z", "2026-11-20T12:00:00.Z",
        "2026-11-20T12:00:00+", "2026-11-20T12:00:00+9", "2026-11-20T12:00:00Z ", " 2026-11-20", "2026-11-20Z",
        "+2026-11-20", "2026-1-1", "1795176000", "２０２６-11-20",
    ])
    func `what is no date is refused`(text: String) throws {
        let error = #expect(throws: FormDecodingError.self) {
            try FormDecoder().decode([String: Date].self, "a=\(text)")
        }
        #expect(error?.code == .invalidValue)
        #expect(error?.value == text)
    }

    static let written: [(seconds: Double, style: FormDateStyle, text: String)] = [
        (0, .iso8601, "1970-01-01T00:00:00Z"), (1_795_176_000.25, .iso8601, "2026-11-20T12:00:00.250Z"),
        (-0.001, .iso8601, "1969-12-31T23:59:59.999Z"), (951_782_400, .iso8601, "2000-02-29T00:00:00Z"),
        (-62_167_219_200, .iso8601, "0000-01-01T00:00:00Z"), (253_402_300_799, .iso8601, "9999-12-31T23:59:59Z"),
        (1_795_176_000, .secondsSince1970, "1795176000"), (-0.5, .secondsSince1970, "-0.5"),
        (1_795_176_000.25, .millisecondsSince1970, "1795176000250"), (-1, .millisecondsSince1970, "-1000"),
    ]

    @Test(arguments: written)
    func `dates are written in their style and read back`(seconds: Double, style: FormDateStyle, text: String) throws {
        let value = ["a": Date(timeIntervalSince1970: seconds)]
        var encoder = FormEncoder()
        encoder.dateStyle = style
        #expect(try encoder.lines(value) == ["a=\(text)"])
        var decoder = FormDecoder()
        decoder.dateStyle = style
        #expect(try decoder.decode([String: Date].self, "a=\(text)") == value)
    }

    @Test
    func `days since the Gregorian reform agree with Foundation's calendar`() throws {
        let style = Date.ISO8601FormatStyle()
        for day in stride(from: -141_000, to: 2_900_000, by: 997) {
            let date = Date(timeIntervalSince1970: Double(day) * 86400 + 45_296)
            #expect(try FormEncoder().lines(["a": date]) == ["a=\(date.formatted(style))"])
        }
    }

    @Test
    func `a format of one's own is used, and its errors are kept`() throws {
        struct Own: Error {}
        let style = FormDateStyle.custom(
            write: { "day \(Int($0.timeIntervalSince1970 / 86400))" },
            read: { text in
                guard let day = Double(text.dropFirst(4)) else { throw Own() }
                return Date(timeIntervalSince1970: day * 86400)
            })
        var encoder = FormEncoder()
        encoder.dateStyle = style
        var decoder = FormDecoder()
        decoder.dateStyle = style
        let value = ["a": Date(timeIntervalSince1970: 3 * 86400)]
        #expect(try encoder.lines(value) == ["a=day 3"])
        #expect(try decoder.decode([String: Date].self, "a=day 3") == value)
        let error = #expect(throws: FormDecodingError.self) { try decoder.decode([String: Date].self, "a=day x") }
        #expect(error?.underlyingError is Own)
    }
}
